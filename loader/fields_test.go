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

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/store/catalog"
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

// TestNodataInBatches: floats are filled with 0, native and integer tensors keep nodata, and Fill
// replaces it everywhere. Windows past the edge have 0 or Fill there.
func TestNodataInBatches(t *testing.T) {
	tab := gaps()
	once := &spec.Normalize{Scale: []float64{0.5}, Offset: []float64{2}}
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
		{Field{DType: "uint8", Clip: true}, false},
		{Field{DType: "uint8", Clip: true, Fill: fillOf(9)}, true},
		{Field{DType: "int64"}, false},
		{Field{DType: "int64", Fill: fillOf(-100)}, true},
	} {
		f := c.field
		f.Name, f.Layout, f.Pad = "image", "n y x", true // one band needs no axis
		name := fmt.Sprintf("%s fill %v normalize %v", f.DType, f.Fill, f.Normalize != nil)
		e := openFake(t, Spec{
			Fields: []Field{f}, BatchSize: 6,
			Sampler: Sampler{Kind: spec.RandomWindow, Height: 26, Width: 10},
		}, tab, 3)
		for _, native := range []bool{false, true} {
			b := wait(t, e.Start(context.Background(), steps.StepTicket(0, 0, 6, 0, 1), native))
			img := b.Tensors[0]
			if fmt.Sprint(img.Shape, img.Axes) != "[6 26 10] [n y x]" {
				t.Fatalf("%s: shape %v of %v", name, img.Shape, img.Axes)
			}
			for k, row := range b.Samples {
				a := tab.assets[[2]int64{0, row}]
				box := shuffle.Window(shuffle.Crop{
					Position: b.Positions[k],
					Height:   a.h, Width: a.w, H: 26, W: 10, AlignY: 1, AlignX: 1,
				})
				y0, x0 := box.Y, box.X
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

// elementOf returns an element of a tensor, after the arithmetic that its receiver still has to do.
func elementOf(t *batch.Tensor, i int) float64 {
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
		v = float64(v*float64(c.Scale[0])) + float64(c.Offset[0])
	}
	return v
}

// TestHashOfFilledFloats: a run whose nodata is filled under the present rule has another spec hash
// than before that rule, so no state resumes with other pixels. All other runs keep their hash.
func TestHashOfFilledFloats(t *testing.T) {
	for _, c := range []struct {
		field  Field
		before bool
	}{
		{Field{DType: "float32"}, false},
		{Field{DType: "bfloat16"}, false},
		{Field{DType: "float32", Fill: fillOf(0)}, true},
		{Field{DType: "float32", Normalize: &spec.Normalize{Scale: []float64{2}, Offset: []float64{0}}}, true},
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

// TestInt64IsForRealTypes: int64 refuses complex files only; pixels that it lacks are found when they are read.
func TestInt64IsForRealTypes(t *testing.T) {
	for from, ok := range map[chunk.DType]bool{
		chunk.Uint8:        true,
		chunk.Uint16:       true,
		chunk.Uint32:       true,
		chunk.Int8:         true,
		chunk.Int16:        true,
		chunk.Int32:        true,
		chunk.Int64:        true,
		chunk.Uint64:       true,
		chunk.Float16:      true,
		chunk.Float32:      true,
		chunk.Float64:      true,
		chunk.ComplexInt16: false,
	} {
		x := &chunk.Index{Bands: 1, Height: 1, Width: 1, ChunkB: 1, ChunkH: 1, ChunkW: 1, DType: from}
		_, err := pixels.NewRaster(Field{Name: "image", DType: "int64", Layout: "n b y x"}, 0, x)
		if ok != (err == nil) || !ok &&
			(fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), from.String()+" to int64")) {
			t.Errorf("%s: %v", from, err)
		}
	}
	labels := Field{Name: "mask", DType: "int64", Normalize: &spec.Normalize{Scale: []float64{1}, Offset: []float64{0}}}
	if err := labels.Validate(); err == nil || !strings.Contains(err.Error(), `dtype is "int64"`) {
		t.Error(err)
	}
}

// TestScaleOfZero: a scale that would map all samples to one number is refused by its place.
func TestScaleOfZero(t *testing.T) {
	n := &spec.Normalize{Scale: []float64{1, 0}, Offset: []float64{0, 0}}
	if err := n.Validate("float32"); err == nil || !strings.Contains(err.Error(), "scale 1 of 2 is 0") {
		t.Error(err)
	}
}

// TestResampledLabelsStayLabels: int64 is resampled as integers are, to the nearest sample.
func TestResampledLabelsStayLabels(t *testing.T) {
	tab := gaps()
	var got [2][]byte
	for i, dtype := range []string{"native", "int64"} {
		e := openFake(t, Spec{
			Fields: []Field{{Name: "image", DType: dtype}}, BatchSize: 6, Augment: "d4",
			Sampler: Sampler{Kind: spec.ResizedWindow, Height: 12, Width: 12},
		}, tab, 2)
		b := wait(t, e.Start(context.Background(), steps.StepTicket(0, 0, 6, 0, 1), false))
		for k := range 6 * 12 * 12 {
			got[i] = binary.LittleEndian.AppendUint64(got[i], uint64(int64(elementOf(&b.Tensors[0], k))))
		}
		b.Release()
	}
	if !bytes.Equal(got[0], got[1]) {
		t.Error("labels differ")
	}
}

// TestWindowField: a chip has its asset's pixels in the window that the batch names.
func TestWindowField(t *testing.T) {
	tab := gaps()
	tab.broken = map[int64]error{4: fault.At(fault.Corrupt, "tile", 1, "broken")}
	for _, s := range []Sampler{
		{Kind: spec.RandomWindow, Height: 7, Width: 26, PerAsset: 3},
		{Kind: spec.GridWindow, Height: 9, Width: 8, GridWindows: spec.GridWindows{StrideY: 5, StrideX: 8, Pad: true}},
		{Kind: spec.TileWindow, Height: 6, Width: 6, TileWindows: spec.TileWindows{TileHeight: 8, TileWidth: 8,
			PerVisit: 2,
			Pool:     2}},
		{Kind: spec.ResizedWindow, Height: 8, Width: 8},
		{},
	} {
		if s.Kind == "" { // whole chips
			s.Height, s.Width = 20, 24
		}
		e := openFake(t, Spec{
			Fields:    []Field{{Name: "image", Layout: "n y x", Pad: true, Fill: fillOf(0)}},
			BatchSize: 4, Sampler: s, Shuffle: true, Windows: true, BadSamples: spec.BadSkip,
		}, tab, 2)
		if i := e.Fields()[1]; i.Name != "window" || fmt.Sprint(i.Shape, i.DType) != "[1 4] int64" {
			t.Errorf("%+v", i)
		}
		resized := 0
		for step := range e.Steps() {
			b := wait(t, e.Start(context.Background(), steps.StepTicket(0, step, 4, 0, 1), false))
			win, img := b.Tensor("window"), b.Tensor("image")
			if fmt.Sprint(win.Shape, win.Axes) != "[4 4] [n yxhw]" {
				t.Fatalf("shape %v of %v", win.Shape, win.Axes)
			}
			for k := range 4 {
				at := func(i int) int { return int(elementOf(win, 4*k+i)) }
				if !b.Valid[k] {
					if at(0) != -1 || at(1) != -1 || at(2) != -1 || at(3) != -1 {
						t.Errorf("%s: a row without a sample has a window", s.Kind)
					}
					continue
				}
				row := e.plan.At(0, b.Positions[k]).Row
				a, h, w := tab.assets[[2]int64{0, row}], int(img.Shape[1]), int(img.Shape[2])
				if at(2) != h || at(3) != w {
					resized++
				}
				for i := range h * w {
					_, _, ny, _ := places(i/w, at(2), h)
					_, _, nx, _ := places(i%w, at(3), w)
					v, there := pixel(a, 0, at(0)+ny, at(1)+nx)
					if !there {
						v = 0
					}
					if got := uint16At(img.Data, k*h*w+i); got != v {
						t.Fatalf("%s: row %d pixel %d is %d, want %d of the window %d %d %d %d",
							s.Kind, k, i, got, v, at(0), at(1), at(2), at(3))
					}
				}
			}
			b.Release()
		}
		if (resized > 0) != (s.Kind == spec.ResizedWindow) {
			t.Errorf("%s: %d windows of another size than the chip", s.Kind, resized)
		}
	}
	err := (Spec{Source: "a", BatchSize: 1, Windows: true, Fields: []Field{{Name: "window"}}}).WithDefaults().Validate()
	if err == nil {
		t.Error("two members are called window")
	}
}

// TestNumberFieldsInAnyDType: a number of a column keeps its value, except for the rounding of
// floats, or makes its row bad.
func TestNumberFieldsInAnyDType(t *testing.T) {
	i := func(v int64) catalog.Value { return catalog.Value{Int: v} }
	f := func(v float64) catalog.Value { return catalog.Value{Float: v} }
	null := catalog.Value{Null: true}
	const bad = "bad"
	for _, c := range []struct {
		kind  catalog.Kind
		dtype string
		value catalog.Value
		want  string // little-endian, or bad
	}{
		{catalog.Int, "uint8", i(255), "ff"},
		{catalog.Int, "uint8", i(256), bad},
		{catalog.Int, "uint8", i(-1), bad},
		{catalog.Int, "int8", i(-128), "80"},
		{catalog.Int, "int8", i(128), bad},
		{catalog.Int, "int8", null, bad},
		{catalog.Int, "uint16", i(65535), "ffff"},
		{catalog.Int, "uint16", i(65536), bad},
		{catalog.Int, "int16", i(-32768), "0080"},
		{catalog.Int, "int16", i(32768), bad},
		{catalog.Int, "uint32", i(1<<32 - 1), "ffffffff"},
		{catalog.Int, "uint32", i(1 << 32), bad},
		{catalog.Int, "int32", i(-1 << 31), "00000080"},
		{catalog.Int, "int32", i(1 << 31), bad},
		{catalog.Int, "uint64", i(math.MaxInt64), "ffffffffffffff7f"},
		{catalog.Int, "uint64", i(-1), bad},
		{catalog.Int, "int64", i(math.MinInt64), "0000000000000080"},
		{catalog.Int, "native", i(-2), "feffffffffffffff"},
		{catalog.Float, "native", f(2), "0000000000000040"},
		{catalog.Int, "float32", i(1<<24 + 1), "0000804b"},
		{catalog.Int, "float32", null, "0000c07f"},
		{catalog.Int, "float16", i(65519), "ff7b"},
		{catalog.Int, "float16", i(65520), bad},
		{catalog.Int, "float16", i(2049), "0068"},
		{catalog.Int, "bfloat16", i(257), "8043"},
		{catalog.Float, "float16", f(math.Inf(-1)), "00fc"},
		{catalog.Float, "float16", f(1e5), bad},
		{catalog.Float, "float32", f(1e39), bad},
		{catalog.Float, "float32", f(0.1), "cdcccc3d"},
		{catalog.Float, "bfloat16", f(3.4e38), bad},
		{catalog.Float, "float64", f(0.1), "9a9999999999b93f"},
		{catalog.Float, "int64", f(3), "0300000000000000"},
		{catalog.Float, "int64", f(3.5), bad},
		{catalog.Float, "int64", f(math.NaN()), bad},
		{catalog.Float, "int64", f(0x1p63), bad},
		{catalog.Float, "int64", f(-0x1p63), "0000000000000080"},
		{catalog.Float, "uint8", f(255), "ff"},
		{catalog.Float, "uint8", f(256), bad},
		{catalog.Float, "uint8", null, bad},
	} {
		v := newValueField(Field{Name: "n", Kind: spec.NumberField, DType: c.dtype}, 0, c.kind)
		got := bad
		if _, err := v.bits(c.value); err == nil {
			got = fmt.Sprintf("%x", v.tensor([]catalog.Value{c.value}, []bool{true}).Data)
		} else if fault.KindOf(err) != fault.Corrupt {
			t.Errorf("%v", err)
		}
		if got != c.want {
			t.Errorf("%v %+v as %s: %s, want %s", c.kind, c.value, c.dtype, got, c.want)
		}
	}
}

// TestContradictingFieldMembers: a member that does not apply to a field is an error that names it
// and the content of the column.
func TestContradictingFieldMembers(t *testing.T) {
	for _, c := range []struct {
		field Field
		holds catalog.Kind
		want  string // "" for none
	}{
		{
			Field{Kind: spec.RasterField}, catalog.Int,
			`the field is a raster (by its kind, or as it has bands, layout, sizes, normalize, clip, fill, pad, ` +
				`validity, resample or physical), and column "a" holds ints`,
		},
		{Field{Kind: spec.TextField}, catalog.Raster, `kind is "text", and column "a" holds rasters`},
		{Field{Kind: spec.NumberField}, catalog.Text, `kind is "number", and column "a" holds texts`},
		{Field{Kind: spec.ArrayField, DType: "int64"}, catalog.Text, `dtype is "int64"`},
		{Field{Kind: spec.ArrayField, DType: "int32"}, catalog.Raster, `dtype is "int32", and rasters have native,`},
		{Field{Kind: spec.ArrayField, DType: "int32"}, catalog.Float, ""},
		{
			Field{Bands: []int{1}}, catalog.Text,
			`bands is given, which is for rasters (kind "raster" says that texts are paths, whatever they end in), ` +
				`and column "a" holds texts`,
		},
		{Field{Validity: "v"}, catalog.Int, `validity is given`},
		{Field{DType: "float32", Layout: "n b y x", Pad: true}, catalog.Text, ""}, // what all fields have by default
	} {
		f := c.field
		f.Name = "a"
		f = (Spec{Fields: []Field{f}}).WithDefaults().Fields[0]
		if err := f.Validate(); err != nil {
			t.Errorf("%+v: %v", c.field, err)
		}
		err := f.CheckKind(c.holds)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.field, err, c.want)
		}
	}
	for want, f := range map[string]Field{
		`kind is "words": it must be`: {Kind: "words"},
		`dtype is "float32", but kind is "text"`: {
			Kind: spec.TextField, DType: "float32",
		},
		`kind is "number" and bands is given`: {
			Kind: spec.NumberField, Bands: []int{0},
		},
		`kind is "text" and layout is given`: {Kind: spec.TextField, Layout: "n y x"},
		`kind is "number" and pattern is "{id}.tif"`: {
			Kind: spec.NumberField, Pattern: "{id}.tif",
		},
		`dtype is "int32": it must be one of native, float32, float16, bfloat16`: {
			Kind: spec.RasterField, DType: "int32",
		},
	} {
		f.Name = "a"
		err := (Spec{Fields: []Field{f}}).WithDefaults().Fields[0].Validate()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", f, err, want)
		}
	}
}

// TestHashOfKinds: naming the kind that a column has anyway keeps the spec hash; a dtype of numbers
// changes batches, and so the hash.
func TestHashOfKinds(t *testing.T) {
	hash := func(image, label Field) string {
		tab := gaps()
		tab.kinds = []catalog.Kind{catalog.Raster, catalog.Int}
		image.Name, label.Name = "image", "label"
		return openFake(t, Spec{Fields: []Field{image, label}, BatchSize: 2}, tab, 1).Hash()
	}
	plain := hash(Field{DType: "uint8"}, Field{DType: "float32"})
	if hash(Field{Kind: spec.RasterField, DType: "uint8"}, Field{DType: "float32"}) != plain ||
		hash(Field{Kind: spec.ArrayField, DType: "uint8"}, Field{DType: "float32"}) != plain {
		t.Error("the kind of a raster changes the hash")
	}
	if hash(Field{DType: "uint8"}, Field{Kind: spec.ArrayField, DType: "float32"}) == plain {
		t.Error("a dtype of numbers does not change the hash")
	}
}

// TestPickBands: a name stands for one band, and errors list the names.
func TestPickBands(t *testing.T) {
	names := []string{"B02", "", "B08", "B08", "b02"}
	for _, c := range []struct {
		want []string
		bad  string // "" for none
		at   string
	}{
		{[]string{"b02", "B02", "b02"}, "", "[4 0 4]"},
		{[]string{"B03"}, `no band "B03"; there are ["B02" "" "B08" "B08" "b02"]`, ""},
		{[]string{"B02", "B08"}, `two bands are called "B08"`, ""},
	} {
		at, err := pixels.PickBands(names, c.want)
		if (err == nil) != (c.bad == "") || err != nil && !strings.Contains(err.Error(), c.bad) ||
			err == nil && fmt.Sprint(at) != c.at {
			t.Errorf("%q: %v, %v", c.want, at, err)
		}
	}
	_, err := pixels.PickBands(nil, []string{"B02"})
	if fault.KindOf(err) != fault.NotFound || !strings.Contains(err.Error(), "the file has no band names") {
		t.Error(err)
	}
	if _, err := pixels.PickBands(make([]string, 1000), []string{"B02"}); len(err.Error()) > 400 {
		t.Errorf("an error of %d bytes", len(err.Error()))
	}
	for _, f := range []Field{
		{BandNames: []string{}},
		{BandNames: []string{""}},
		{BandNames: []string{"a"}, Bands: []int{0}},
	} {
		f.Name, f.DType = "a", "native"
		if err := f.Validate(); err == nil || !strings.Contains(err.Error(), "band_names") {
			t.Errorf("%+v: %v", f, err)
		}
	}
}
