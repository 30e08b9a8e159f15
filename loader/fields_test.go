package loader

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/catalog"
	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/shuffle"
)

// gaps returns one-band chips, some of which have a nodata value and some a mask.
func gaps() *fakeTable {
	r := rand.New(rand.NewPCG(8, 8))
	tab := &fakeTable{rows: 6, kinds: []catalog.Kind{catalog.Raster}}
	for row := range tab.rows {
		a, o := newFakeAsset(r, 1, 20, 24, 8, row%2 == 0, false)
		if row >= 3 {
			o = a.addMask(r, o, 8, 8, row%2 == 0)
		}
		tab.add(0, row, a, o)
	}
	return tab
}

// TestWhatBecomesOfNodata promises the rule of Field.Fill: floats are filled with 0, native and integer tensors keep
// nodata, and Fill is for all of them. Windows reach past the edge, where there is 0 or Fill.
func TestWhatBecomesOfNodata(t *testing.T) {
	tab := gaps()
	once := &Normalize{Scale: []float64{0.5}, Offset: []float64{2}}
	for _, c := range []struct {
		field Field
		fills bool
	}{
		{Field{DType: "float32"}, true},
		{Field{DType: "float16"}, true},
		{Field{DType: "float32", Normalize: once}, true},
		{Field{DType: "float32", Fill: fillOf(-3)}, true},
		{Field{DType: "native"}, false},
		{Field{DType: "native", Fill: fillOf(9)}, true},
		{Field{DType: "uint8"}, false},
		{Field{DType: "uint8", Fill: fillOf(9)}, true},
		{Field{DType: "int64"}, false},
		{Field{DType: "int64", Fill: fillOf(-100)}, true},
	} {
		f := c.field
		f.Name, f.Layout, f.Pad = "image", "n y x", true // one band needs no axis
		name := fmt.Sprintf("%s fill %v normalize %v", f.DType, f.Fill, f.Normalize != nil)
		e := openFake(t, Spec{Fields: []Field{f}, BatchSize: 6, Sampler: Sampler{Kind: RandomWindow, Height: 26, Width: 10}}, tab, 3)
		for _, native := range []bool{false, true} {
			b := wait(t, e.Start(context.Background(), shuffle.StepTicket(0, 0, 6, 0, 1), native))
			img := b.Tensors[0]
			if fmt.Sprint(img.Shape, img.Axes) != "[6 26 10] [n y x]" {
				t.Fatalf("%s: shape %v of %v", name, img.Shape, img.Axes)
			}
			for k, row := range b.Samples {
				a := tab.assets[[2]int64{0, row}]
				y0, x0 := shuffle.Window(0, 0, b.Positions[k], a.h, a.w, 26, 10, 1, 1)
				for i := range 26 * 10 {
					y, x := y0+i/10, x0+i%10
					want, inside := 0., y < a.h && x < a.w
					if f.Fill != nil {
						want = float64(*f.Fill)
					}
					if inside && (!c.fills || a.valid(0, y, x)) {
						want = float64(a.at(0, y, x))
						if f.Normalize != nil {
							want = want*0.5 + 2
						}
						if f.DType == "uint8" {
							want = min(want, 255)
						}
						if f.DType == "float16" {
							want = halfOf(want)
						}
					}
					if got := elementOf(&img, k*260+i); got != want {
						t.Fatalf("%s native %v: row %d (%d, %d) is %v, want %v", name, native, k, y, x, got, want)
					}
				}
			}
			b.Release()
		}
	}
}

// halfOf rounds a whole number in [0, 2^16) to the 11 bits of float16, ties to even.
func halfOf(v float64) float64 {
	unit := math.Exp2(max(math.Floor(math.Log2(max(v, 1)))-10, 0))
	return math.RoundToEven(v/unit) * unit
}

// elementOf returns an element of a tensor, after the arithmetic that is left to its receiver.
func elementOf(t *Tensor, i int) float64 {
	raw := func() float64 {
		switch t.DType {
		case chunk.Uint8:
			return float64(t.Data[i])
		case chunk.Uint16:
			return float64(uint16At(t.Data, i))
		case chunk.Int64:
			return float64(int64(binary.LittleEndian.Uint64(t.Data[8*i:])))
		case chunk.Float16: // normal numbers
			bits := uint16At(t.Data, i)
			if bits&0x7fff == 0 {
				return 0
			}
			v := math.Ldexp(1+float64(bits&0x3ff)/1024, int(bits>>10&31)-15)
			if bits&0x8000 != 0 {
				v = -v
			}
			return v
		}
		return float64(float32At(t.Data, i))
	}
	v, c := raw(), t.Convert
	switch {
	case c == nil:
	case c.Mask != nil && c.Mask[i] == 0:
		v = c.Fill
	case len(c.Scale) > 0:
		v = v*float64(c.Scale[0]) + float64(c.Offset[0])
	}
	return v
}

// TestHashOfFilledFloats promises that the spec hash of a run whose nodata would now be filled is another one than
// before that rule, so that no state goes on with other pixels; all others keep theirs.
func TestHashOfFilledFloats(t *testing.T) {
	for _, c := range []struct {
		field  Field
		before bool
	}{
		{Field{DType: "float32"}, false},
		{Field{DType: "bfloat16"}, false},
		{Field{DType: "float32", Fill: fillOf(0)}, true},
		{Field{DType: "float32", Normalize: &Normalize{Scale: []float64{2}, Offset: []float64{0}}}, true},
		{Field{DType: "native"}, true},
		{Field{DType: "uint8"}, true},
	} {
		c.field.Name = "image"
		e := openFake(t, Spec{Fields: []Field{c.field}, BatchSize: 2}, gaps(), 1)
		if e.fillsFloats() == c.before {
			t.Errorf("%+v: the hash is as before: %v", c.field, !c.before)
		}
	}
}

// TestInt64IsForIntegers promises that what int64 cannot hold exactly is refused, by the file's dtype.
func TestInt64IsForIntegers(t *testing.T) {
	for from, ok := range map[chunk.DType]bool{
		chunk.Uint8: true, chunk.Uint16: true, chunk.Uint32: true, chunk.Int8: true, chunk.Int16: true, chunk.Int32: true, chunk.Int64: true,
		chunk.Uint64: false, chunk.Float16: false, chunk.Float32: false, chunk.Float64: false, chunk.ComplexInt16: false,
	} {
		x := &chunk.Index{Bands: 1, Height: 1, Width: 1, ChunkB: 1, ChunkH: 1, ChunkW: 1, DType: from}
		_, err := newRasterField(Field{Name: "image", DType: "int64", Layout: "n b y x"}, 0, x)
		if ok != (err == nil) || !ok && (fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), from.String()+" to int64")) {
			t.Errorf("%s: %v", from, err)
		}
	}
	labels := Field{Name: "mask", DType: "int64", Normalize: &Normalize{Scale: []float64{1}, Offset: []float64{0}}}
	if err := labels.validate(); err == nil || !strings.Contains(err.Error(), `dtype is "int64"`) {
		t.Error(err)
	}
}

// TestScaleOfZero promises that a scale that would make one number of all samples is refused by its place.
func TestScaleOfZero(t *testing.T) {
	n := &Normalize{Scale: []float64{1, 0}, Offset: []float64{0, 0}}
	if err := n.validate("float32"); err == nil || !strings.Contains(err.Error(), "scale 1 of 2 is 0") {
		t.Error(err)
	}
}

// TestResampledLabelsStayLabels promises that int64 is resampled as integers are, to the nearest.
func TestResampledLabelsStayLabels(t *testing.T) {
	tab := gaps()
	var got [2][]byte
	for i, dtype := range []string{"native", "int64"} {
		e := openFake(t, Spec{
			Fields: []Field{{Name: "image", DType: dtype}}, BatchSize: 6, Augment: "d4",
			Sampler: Sampler{Kind: ResizedWindow, Height: 12, Width: 12},
		}, tab, 2)
		b := wait(t, e.Start(context.Background(), shuffle.StepTicket(0, 0, 6, 0, 1), false))
		for k := range 6 * 12 * 12 {
			got[i] = binary.LittleEndian.AppendUint64(got[i], uint64(int64(elementOf(&b.Tensors[0], k))))
		}
		b.Release()
	}
	if !bytes.Equal(got[0], got[1]) {
		t.Error("labels differ")
	}
}
