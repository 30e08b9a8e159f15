package pixels

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
)

// drawColours draws a look-up table of colours of so many bands, which stand for one value or two.
func drawColours(t *rapid.T, bands, numbers, unit int) *spec.LUT {
	table, seen := &spec.LUT{}, map[string]bool{}
	values := rapid.IntRange(1, 2).Draw(t, "values")
	for range rapid.IntRange(1, 30).Draw(t, "colours") {
		colour := rapid.SliceOfN(rapid.IntRange(0, numbers-1), bands, bands).Draw(t, "colour")
		key := make([]byte, 0, bands)
		for i, number := range colour {
			key = append(key, byte(number))
			colour[i] *= unit
		}
		if !seen[string(key)] {
			seen[string(key)] = true
			table.Colours = append(table.Colours, colour)
			table.To = append(table.To, nil)
			for range values {
				last := &table.To[len(table.To)-1]
				*last = append(*last, float64(rapid.IntRange(0, 99).Draw(t, "value")))
			}
		}
	}
	return table
}

// TestColoursAgainstSlow: a pixel has the value of its colour. It is nodata if it is missing in all bands, or if its
// colour has no value and the field a fill; without a fill such a pixel is an error, which names it.
func TestColoursAgainstSlow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawImage(t, dtypes.Draw(t, "dtype"))
		x, bands := m.asset.Index, 0
		field := spec.Field{Name: "x", DType: rapid.SampledFrom([]string{"native", "float32"}).Draw(t, "to"),
			Layout: "n b y x", Validity: "valid"}
		field.Bands = rapid.SliceOfN(rapid.IntRange(0, x.DataBands()-1), 1, 4).Draw(t, "picked")
		bands = len(field.Bands)
		field.LUT = drawColours(t, bands, min(m.numbers, 3), m.unit)
		if fills := rapid.Bool().Draw(t, "fills"); fills {
			fill := spec.Float(7)
			field.Fill = &fill
		}
		if rapid.IntRange(0, 9).Draw(t, "wrong") == 0 {
			field.Bands = append(field.Bands, 0)
		}
		f, err := NewRaster(field, 0, x)
		if x.DType.Size() > 2 || len(field.Bands) != bands {
			if fault.KindOf(err) != fault.Unsupported || !strings.HasPrefix(err.Error(), "look-up table: ") {
				t.Fatalf("%v with %d bands, colours of %d: %v", x.DType, len(field.Bands), bands, err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		f.SetSize(x.Height, x.Width)
		made := f.Tensor()
		want := chunk.Float32
		if field.DType == "native" {
			want = x.DType
		}
		if made.To != want || made.H != f.H || made.W != f.W {
			t.Fatalf("a tensor of %v, %d by %d", made.To, made.H, made.W)
		}
		plan, err := made.LayoutPattern.Plan(made.Axes(2), nil)
		if err != nil {
			t.Fatal(err)
		}
		convert, err := made.Final.Get(&chunk.Index{Height: x.Height, Width: x.Width}, &made.PickedBands)
		if err != nil {
			t.Fatal(err)
		}
		dst := einops.Target{Data: bytes.Repeat([]byte{0x5a}, plan.Len()*made.To.Size()),
			Mask: bytes.Repeat([]byte{0x5a}, plan.Len())}
		whole := shuffle.Box{H: x.Height, W: x.Width}
		row := &Row{Field: made, Plan: plan, Dst: dst, Cv: convert, N: 1, Win: whole}
		r := NewReader(resources.Options{Opener: m}.WithDefaults())
		box := chunk.Box{Y1: x.Height, X1: x.Width}
		err = r.Coloured(f, x, row, made.Final, func(to *Row, c *Converters) error {
			return r.Read(t.Context(), m.asset, box, f.Picked, to, to.Masked(c, box))
		})
		unknown, first := 0, "" // pixels, and how an error names one
		value := func(j, y, column int) (float64, bool) {
			some, colour := false, []int{}
			for _, b := range f.Picked {
				number, valid := m.at(b, y, column)
				colour, some = append(colour, int(number)), some || valid
			}
			for i, listed := range field.LUT.Colours {
				if some && slices.Equal(listed, colour) {
					return field.LUT.To[i][j], true
				}
			}
			if some {
				if unknown++; unknown == 1 {
					first = fmt.Sprintf("(%s) at row %d, column %d",
						strings.Trim(strings.ReplaceAll(fmt.Sprint(colour), " ", ", "),
							"[]"), y, column)
				}
			}
			return filled(f.coded), false
		}
		for y := range x.Height {
			for column := range x.Width {
				value(0, y, column)
			}
		}
		if field.Fill == nil && unknown > 0 {
			if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(),
				"have colours without a value") ||
				!strings.Contains(err.Error(), first) {
				t.Fatalf("%d pixels of other colours, the first %s: %v", unknown, first, err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		(&tensor{row, plan}).check(t, func(j, y, column int) (float64, bool) {
			got, valid := value(j, y, column)
			if !valid && !made.Final.Base.FillNoData {
				got = number(dst.Data, made.To, plan.Offset("n", 1)+plan.Offset("b", j)+plan.Offset("y", y)+
					plan.Offset("x", column)) // any
			}
			return got, valid
		})
		s := &r.Resample
		held := int64(cap(r.colours) + cap(s.Out) + cap(s.OutValid))
		if said := f.ColourBytes(); said != held || made.ColourBytes() != 0 || !f.Coloured() || made.Coloured() {
			t.Fatalf("%d bytes are held, %d were said", held, said)
		}
	})
}

// TestWindowsOverAnyMemory: a window with more samples than int counts is an error before its memory is asked for.
func TestWindowsOverAnyMemory(t *testing.T) {
	const side = math.MaxInt32
	x := &chunk.Index{Bands: 4, Height: side, Width: side, ChunkB: 1, ChunkH: side, ChunkW: side, DType: chunk.Uint8}
	table := &spec.LUT{Colours: [][]int{{1, 2, 3, 4}}, To: []spec.Values{{5}}}
	f, err := NewRaster(spec.Field{DType: "native", Layout: spec.DefaultLayout, LUT: table}, 0, x)
	if err != nil {
		t.Fatal(err)
	}
	f.SetSize(side, side)
	r := NewReader(resources.Options{}.WithDefaults())
	if err := r.Coloured(f, x, &Row{}, nil, nil); err == nil || !strings.Contains(err.Error(), "too many samples") {
		t.Errorf("of colours: %v", err)
	}
	c, win := &Converters{Base: einops.Convert{From: x.DType, To: x.DType}}, shuffle.Box{H: side, W: side}
	err = r.Planes(t.Context(), catalog.Asset{Index: x}, []int{0, 1, 2, 3}, win, c, 1)
	if err == nil || !strings.Contains(err.Error(), "too many samples") {
		t.Errorf("of planes: %v", err)
	}
}
