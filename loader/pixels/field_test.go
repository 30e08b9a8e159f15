package pixels

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/crs/warp"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
)

// small returns an index of 3 bands, with steps of time if there are some.
func small(d chunk.DType, times int) *chunk.Index {
	return &chunk.Index{Bands: 3 * max(times, 1), Times: times, Height: 4, Width: 4, ChunkB: 1, ChunkH: 4, ChunkW: 4,
		DType: d}
}

// TestFieldsRefused: a field that its first asset cannot have is refused with what is wrong.
func TestFieldsRefused(t *testing.T) {
	one, two := spec.Values{1}, spec.Values{1, 2}
	fill := spec.Float(0)
	colours := &spec.LUT{Colours: [][]int{{0, 0, 0}, {1, 2, 3}}, To: []spec.Values{one, one}}
	for _, c := range []struct {
		field spec.Field
		x     *chunk.Index
		want  string // "": it is not refused
	}{
		{spec.Field{Bands: []int{0, 2}}, small(chunk.Uint8, 0), ""},
		{spec.Field{Bands: []int{0, 3}}, small(chunk.Uint8, 0), "no band 3: bands are 0 to 2"},
		{spec.Field{Bands: []int{0, 3}}, small(chunk.Uint8, 2), "no band 3: bands are 0 to 2"},
		{spec.Field{Times: []int{1}}, small(chunk.Uint8, 2), ""},
		{spec.Field{Times: []int{2}}, small(chunk.Uint8, 2), ""},
		{spec.Field{Times: []int{0}}, small(chunk.Uint8, 0), ""},
		{spec.Field{Times: []int{1}}, small(chunk.Uint8, 0), ""},
		{spec.Field{DType: "float33"}, small(chunk.Uint8, 0), `no dtype is called "float33"`},
		{spec.Field{Layout: "n (b"}, small(chunk.Uint8, 0), "("},
		{spec.Field{DType: "int64"}, small(chunk.Float32, 0), ""},
		{spec.Field{DType: "int64"}, small(chunk.Complex64, 0), "complex64 to int64"},
		{spec.Field{NoData: [][]spec.Float{{1}, {2}}}, small(chunk.Uint8, 0), "nodata has 2 lists for 3 bands"},
		{spec.Field{NoData: [][]spec.Float{{1}, {2}, {3}}}, small(chunk.Uint8, 0), ""},
		{spec.Field{NoData: [][]spec.Float{{1}}}, small(chunk.Uint8, 0), ""},
		{spec.Field{DType: "float32", Normalize: &spec.Normalize{Scale: one, Offset: one}}, small(chunk.Uint8, 0), ""},
		{spec.Field{DType: "float32", Normalize: &spec.Normalize{Scale: two, Offset: two}}, small(chunk.Uint8, 0),
			"have 2 values for 3 bands"},
		{spec.Field{LUT: &spec.LUT{To: []spec.Values{two, two}}, Fill: &fill}, small(chunk.Uint8, 0), "pick one"},
		{spec.Field{LUT: &spec.LUT{To: []spec.Values{two, two}}, Fill: &fill, Bands: []int{1}}, small(chunk.Uint8,
			0), ""},
		{spec.Field{LUT: &spec.LUT{To: []spec.Values{one, one}}, Bands: []int{1}}, small(chunk.Uint8, 0),
			"others need a fill"},
		{spec.Field{LUT: colours}, small(chunk.Uint8, 0), ""},
		{spec.Field{LUT: colours}, small(chunk.Uint16, 0), ""},
		{spec.Field{LUT: colours}, small(chunk.Int16, 0), "the raster is int16: colours are of uint8 and uint16"},
		{spec.Field{LUT: colours, Bands: []int{0, 1}}, small(chunk.Uint8, 0), "3 numbers, and the field has 2 bands"},
		{spec.Field{LUT: colours}, small(chunk.Uint8, 2), "several steps of time"},
		{spec.Field{LUT: colours, Bands: []int{0, 1, 3}}, small(chunk.Uint8, 0), "no band 3: bands are 0 to 2"},
		{spec.Field{LUT: &spec.LUT{To: []spec.Values{{300}}}, DType: "uint8", Fill: &fill, Bands: []int{1}},
			small(chunk.Uint8, 0), "300"},
		{spec.Field{LUT: &spec.LUT{To: []spec.Values{{300}}}, DType: "uint8", Fill: &fill, Bands: []int{1}, Clip: true},
			small(chunk.Uint8, 0), ""},
		{spec.Field{LUT: &spec.LUT{To: []spec.Values{{300}}}, DType: "float32", Fill: &fill, Bands: []int{1}},
			small(chunk.Uint8, 0), ""},
		{spec.Field{LUT: &spec.LUT{To: []spec.Values{one}}, Fill: &fill, Bands: []int{1}}, small(chunk.Int32, 0),
			""},
		{spec.Field{LUT: &spec.LUT{To: []spec.Values{one}}, Fill: &fill}, small(chunk.Complex64, 0), "complex64"},
		{spec.Field{LUT: colours}, small(chunk.Uint8, 1), ""},
		{spec.Field{LUT: colours, Times: []int{1}}, small(chunk.Uint8, 2), ""},
	} {
		if c.field.DType == "" {
			c.field.DType = "native"
		}
		if c.field.Layout == "" {
			c.field.Layout = spec.DefaultLayout
		}
		_, err := NewRaster(c.field, 0, c.x)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v of %v: %v; want %q", c.field, c.x.DType, err, c.want)
		}
	}
}

// TestAssetsThatFitAField: other assets must have the dtype, and the bands that the field picks or, if it picks none,
// as many, and as many steps if it picks none. Picked steps that an asset lacks are padding.
func TestAssetsThatFitAField(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom([]chunk.DType{chunk.Uint8, chunk.Uint16})
		draw := func(name string) *chunk.Index {
			times := rapid.SampledFrom([]int{0, 2, 3}).Draw(t, name+" times")
			return &chunk.Index{DType: d.Draw(t, name+" dtype"), Times: times, Height: 1, Width: 1, ChunkB: 1,
				ChunkH: 1,
				ChunkW: 1, Bands: rapid.IntRange(1, 3).Draw(t, name+" bands") * max(times, 1)}
		}
		x, other := draw("first"), draw("other")
		field := spec.Field{Name: "x", DType: "native", Layout: spec.DefaultLayout}
		if rapid.Bool().Draw(t, "bands") {
			field.Bands = []int{0, rapid.IntRange(0, x.StepBands()-1).Draw(t, "band")}
		}
		if rapid.Bool().Draw(t, "times") {
			field.Times = []int{rapid.IntRange(0, x.Steps()-1).Draw(t, "time")}
		}
		f, err := NewRaster(field, 0, x)
		if err != nil {
			t.Fatal(err)
		}
		fits := x.DType == other.DType
		if field.Bands == nil {
			fits = fits && x.StepBands() == other.StepBands()
		} else {
			fits = fits && max(field.Bands[0], field.Bands[1]) < other.StepBands()
		}
		if field.Times == nil {
			fits = fits && x.Steps() == other.Steps()
		}
		err = f.Accepts(&catalog.Asset{URI: "b", Index: other})
		if fits != (err == nil) || err != nil && fault.KindOf(err) != fault.Unsupported {
			t.Fatalf("%+v beside %+v: %v", other, x, err)
		}
		if !fits || field.Times != nil && field.Times[0] >= other.Steps() {
			return
		}
		planes := f.PlanesOf(nil, other) // the same bands at the same steps, wherever the asset has them
		var want []int
		for k := range f.Picked {
			step, band := f.Picked[k]/x.StepBands(), f.Picked[k]%x.StepBands()
			want = append(want, step*other.StepBands()+band)
		}
		if !slices.Equal(planes.Picked, want) || planes.TimeSteps != f.TimeSteps || len(planes.spans) == 0 {
			t.Fatalf("planes %v of %+v, want %v", planes.Picked, other, want)
		}
	})
}

// TestNativePayloads: samples go as stored if they are smaller than the tensor's and a receiver can convert them. Two
// fields that convert alike share the arithmetic.
func TestNativePayloads(t *testing.T) {
	normal := func(scale spec.Values, clip *[2]spec.Float) *spec.Normalize {
		return &spec.Normalize{Scale: scale, Offset: make(spec.Values, len(scale)), Clip: clip}
	}
	fill, other := spec.Float(1), spec.Float(2)
	compile := func(f spec.Field, d chunk.DType) (*Raster, *einops.Plan) {
		if f.Layout == "" {
			f.Layout = spec.DefaultLayout
		}
		r, err := NewRaster(f, 0, small(d, 0))
		if err != nil {
			t.Fatal(err)
		}
		r.SetSize(4, 4)
		plan, err := r.LayoutPattern.Plan(r.Axes(2), nil)
		if err != nil {
			t.Fatal(err)
		}
		return r, plan
	}
	negative := spec.Float(math.Copysign(0, -1))
	zero, _ := compile(spec.Field{DType: "float32", Fill: &negative,
		Normalize: normal(spec.Values{1}, &[2]spec.Float{negative, negative})}, chunk.Uint8)
	if c := zero.Final.Base; math.Signbit(c.Fill) || math.Signbit(float64(c.Lo)) || math.Signbit(float64(c.Hi)) {
		t.Errorf("-0, which messages cannot hold, stays: %+v", c)
	}
	base := spec.Field{DType: "float32", Normalize: normal(spec.Values{1, 2, 3}, &[2]spec.Float{0, 1}), Fill: &fill}
	first, _ := compile(base, chunk.Uint8)
	for name, c := range map[string]struct {
		change func(f *spec.Field)
		dtype  chunk.DType
		native bool
		same   bool
	}{
		"the same":         {func(*spec.Field) {}, chunk.Uint8, true, true},
		"another dtype":    {func(*spec.Field) {}, chunk.Uint16, true, false},
		"as large":         {func(*spec.Field) {}, chunk.Float32, false, false},
		"larger":           {func(*spec.Field) {}, chunk.Float64, false, false},
		"validity":         {func(f *spec.Field) { f.Validity = "v" }, chunk.Uint8, false, true},
		"physical":         {func(f *spec.Field) { f.Physical = new(true) }, chunk.Uint8, false, true},
		"no axis of bands": {func(f *spec.Field) { f.Layout = "n (b y) x" }, chunk.Uint8, false, true},
		"bands first":      {func(f *spec.Field) { f.Layout = "b n y x" }, chunk.Uint8, true, true},
		"one scale": {func(f *spec.Field) { f.Layout, f.Normalize = "n (b y) x", normal(spec.Values{1}, nil) },
			chunk.Uint8,
			true, false},
		"another scale": {func(f *spec.Field) { f.Normalize = normal(spec.Values{1, 2, 4}, base.Normalize.Clip) },
			chunk.Uint8, true, false},
		"no clip": {func(f *spec.Field) { f.Normalize = normal(base.Normalize.Scale, nil) }, chunk.Uint8, true, false},
		"another low": {func(f *spec.Field) { f.Normalize = normal(base.Normalize.Scale, &[2]spec.Float{-1, 1}) },
			chunk.Uint8, true, false},
		"another high": {func(f *spec.Field) { f.Normalize = normal(base.Normalize.Scale, &[2]spec.Float{0, 2}) },
			chunk.Uint8, true, false},
		"another offset": {func(f *spec.Field) {
			f.Normalize = normal(base.Normalize.Scale, base.Normalize.Clip)
			f.Normalize.Offset[1] = 1
		}, chunk.Uint8, true, false},
		"another fill": {func(f *spec.Field) { f.Fill = &other }, chunk.Uint8, true, false},
	} {
		field := base
		c.change(&field)
		r, plan := compile(field, c.dtype)
		if r.WireNative(plan) != c.native || r.SameArithmetic(first) != c.same {
			t.Errorf("%s: native %v, same %v", name, r.WireNative(plan), r.SameArithmetic(first))
		}
	}
}

// TestBetweenHasNoNaN: between is what docs/order.md says, also beside infinities.
func TestBetweenHasNoNaN(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, c := range [][4]float32{{1, 3, 0.5, 2}, {1, inf, 0, 1}, {inf, inf, 0.5, inf}, {-inf, -inf, 0.25, -inf},
		{inf, 1, 0, inf}, {2, 2, 0.3, 2}, {1, inf, 0.5, inf}, {4, 0, 0.25, 3}} {
		if got := between(c[0], c[1], c[2]); got != c[3] {
			t.Errorf("between %v and %v at %v: %v, want %v", c[0], c[1], c[2], got, c[3])
		}
	}
}

// TestValuesThatATensorCannotHold: a pixel beyond uint8 is an error that names it, in any row, band and step.
func TestValuesThatATensorCannotHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := small(chunk.Uint16, rapid.SampledFrom([]int{0, 2}).Draw(t, "times"))
		field := spec.Field{Name: "x", DType: "uint8", Layout: spec.DefaultLayout, Validity: "v"}
		if x.Times > 0 {
			field.Layout = spec.TimeLayout
		}
		f, err := NewRaster(field, 0, x)
		if err != nil || !f.Checked() {
			t.Fatal(err, f.Checked())
		}
		f.SetSize(4, 4)
		m := &image{asset: catalog.Asset{URI: "f", Index: x}, samples: make([]float64, x.Bands*16)}
		bad := rapid.IntRange(-1, len(m.samples)-1).Draw(t, "bad")
		for i := range m.samples {
			if m.samples[i] = 255; i == bad {
				m.samples[i] = 256
			}
		}
		m.file = encode(t, nil, x, func(b, y, c int) float64 { return m.samples[b*16+y*4+c] },
			func(int) bool { return false })
		s := newTensor(t, x, f, nil, shuffle.Box{H: 4, W: 4}, 0)
		r := NewReader(resources.Options{Opener: folder.OneFile(m.file)}.WithDefaults())
		if err := r.Read(t.Context(), m.asset, chunk.Box{Y1: 4, X1: 4}, f.Picked, s.row, nil); err != nil {
			t.Fatal(err)
		}
		switch err := s.row.CheckRange(); {
		case bad < 0 && err != nil, bad >= 0 && fault.KindOf(err) != fault.Unsupported:
			t.Fatalf("sample %d is 256: %v", bad, err)
		case bad >= 0:
			want := "the uint16 at row " + string(rune('0'+bad%16/4)) + ", column " + string(rune('0'+bad%4)) +
				" of band " + string(rune('0'+bad/16%3))
			if !strings.Contains(err.Error(), want) {
				t.Fatalf("%v; want %s", err, want)
			}
		}
	})
}

// TestOverviewsThatAWindowWants: a window reads the coarsest overview whose pixels are at most 2 % larger than its own,
// if they are at least a quarter larger than the raster's.
func TestOverviewsThatAWindowWants(t *testing.T) {
	for _, factor := range []float64{0.5, 1, 1.2, 1.3, 1.9, 1.97, 2, 3.9, 4, 7} {
		window := warp.Raster{CRS: sameCRS, Transform: [6]float64{0, 10 * factor, 0, 0, 0, -10 * factor}, Height: 8,
			Width: 8}
		raster := warp.Raster{CRS: sameCRS, Transform: [6]float64{0, 10, 0, 0, 0, -10}, Height: 256, Width: 256}
		m, err := warp.NewMapping(window, raster)
		if err != nil {
			t.Fatal(err)
		}
		want := -1
		var levels []*chunk.Index
		for i, side := range []int{128, 64, 32} {
			levels = append(levels, &chunk.Index{Height: side, Width: side})
			if float64(256/side) <= factor*1.02 {
				want = i
			}
		}
		if got := Coarsest(levels, m); got != want {
			t.Errorf("%v pixels a side: overview %d, want %d", factor, got, want)
		}
		flat := []*chunk.Index{{Height: 1, Width: 256}, {Height: 256, Width: 1}}
		if got := Coarsest(flat, m); got != -1 {
			t.Errorf("%v pixels a side: overview %d of other proportions", factor, got)
		}
		for _, blends := range []bool{false, true} {
			f := &Raster{Blends: blends}
			for rule, wants := range map[string]bool{"": false, spec.AllOverviews: factor >= 1.25,
				spec.AutoOverviews: blends && factor >= 1.25} {
				if f.WantsOverview(rule, m) != wants {
					t.Errorf("%v pixels a side, rule %q, blends %v: %v", factor, rule, blends, !wants)
				}
			}
		}
	}
}

// timed is a file with a time, that counts reads.
type timed struct {
	source.Reader
	at    time.Time
	reads int
}

func (f *timed) ModTime() time.Time { return f.at }

func (f *timed) ReadAt(ctx context.Context, p []byte, off int64) error {
	f.reads++
	return f.Reader.ReadAt(ctx, p, off)
}

// TestFilesThatWereRewritten: a file of another size is refused, one of another time is read again, once, and refused
// if its index has changed. It may be a member of a larger file.
func TestFilesThatWereRewritten(t *testing.T) {
	then := time.Unix(1000, 0)
	for _, member := range []string{"", "a/b"} {
		content, off := folder.TIFF(5, 3, 0), int64(0)
		if member != "" {
			off = 24
		}
		open := func(content []byte, at time.Time) *timed {
			opener := folder.OneFile(append(make([]byte, off), content...))
			file, err := opener.Open(t.Context(), "f")
			if err != nil {
				t.Fatal(err)
			}
			return &timed{Reader: file, at: at}
		}
		made, _, err := catalog.OpenAsset(t.Context(), folder.OneFile(content), "f", 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		a := catalog.Asset{URI: "f", Index: made.Index.Shift(off), Member: member, Offset: off,
			Length: int64(len(content)),
			Size:   off + int64(len(content)), MTime: then}
		if member == "" {
			a.Length = 0
		}
		s := &freshness{}
		same := open(content, then)
		if err := s.check(t.Context(), &a, same, 1<<20); err != nil || same.reads != 0 {
			t.Errorf("member %q of the same time: %v after %d reads", member, err, same.reads)
		}
		if err := s.check(t.Context(), &a, open(folder.TIFF(5, 3, 1), then),
			1<<20); fault.KindOf(err) != fault.Corrupt {
			t.Errorf("member %q of another size: %v", member, err)
		}
		later := then.Add(time.Second)
		copied := open(content, later)
		for range 2 {
			if err := s.check(t.Context(), &a, copied, 1<<20); err != nil || copied.reads == 0 {
				t.Errorf("a copy of member %q: %v after %d reads", member, err, copied.reads)
			}
		}
		first := copied.reads
		if _ = s.check(t.Context(), &a, copied, 1<<20); copied.reads != first {
			t.Errorf("a copy of member %q is read again", member)
		}
		rewritten := open(folder.TIFF(3, 5, 0), later.Add(time.Second))
		for range 2 { // never trusted
			if err := s.check(t.Context(), &a, rewritten, 1<<20); fault.KindOf(err) != fault.Corrupt ||
				!strings.Contains(err.Error(), "rewritten") {
				t.Errorf("member %q is rewritten: %v", member, err)
			}
		}
		if member != "" { // which lies past the end of the file
			cut := a
			cut.Offset, cut.Size = off+1, 0
			if err := s.check(t.Context(), &cut, open(content, later), 1<<20); fault.KindOf(err) != fault.Corrupt ||
				!strings.Contains(err.Error(), "in a file of") {
				t.Errorf("a member past the end of its file: %v", err)
			}
		}
		if a.Size = 0; s.check(t.Context(), &a, open(folder.TIFF(5, 3, 1), then), 1<<20) != nil {
			t.Error("a file whose size is not known is refused")
		}
	}
}

// TestSweepVisitsOnce: each number is visited once, progress counts them, and the error is of the lowest number.
func TestSweepVisitsOnce(t *testing.T) {
	const n = 40
	for _, workers := range []int{1, 3} {
		for _, remote := range []bool{false, true} {
			for _, fails := range []int64{-1, 7} {
				var mu sync.Mutex
				visits, counted, readers := map[int64]int{}, []int64{}, 0
				o := resources.Options{Workers: workers, Fetchers: 5}.WithDefaults()
				err := Sweep(t.Context(), o, remote, n, func(done, total int64) {
					if counted = append(counted, done); total != n {
						t.Errorf("%d of %d", done, total)
					}
				}, func(r *Reader) func(context.Context, int64) error {
					readers++
					return func(_ context.Context, i int64) error {
						mu.Lock()
						defer mu.Unlock()
						if visits[i]++; i >= fails && fails >= 0 {
							return fault.At(fault.Corrupt, "x", i, "bad")
						}
						return nil
					}
				})
				want := workers
				if remote {
					want = 5
				}
				var failed *fault.Error
				errors.As(err, &failed)
				if (err != nil) != (fails >= 0) || failed != nil && failed.Off != fails || readers != want {
					t.Errorf("%d workers: %v; %d readers", workers, err, readers)
				}
				for i := range counted {
					if counted[i] != int64(i+1) {
						t.Errorf("progress %v", counted)
					}
				}
				for i, count := range visits {
					if count != 1 {
						t.Errorf("%d is visited %d times", i, count)
					}
				}
				if fails < 0 && (len(visits) != n || len(counted) != n) {
					t.Errorf("%d visits, %d counted", len(visits), len(counted))
				}
			}
		}
	}
}

// TestAxesOfFields: rows of a batch have the axis t if files have steps of time or samples are sequences, whose steps
// then follow each other.
func TestAxesOfFields(t *testing.T) {
	for _, c := range []struct {
		times, steps int
		want         string
	}{
		{0, 0, "[{n 5} {b 3} {y 6} {x 7}]"}, {2, 0, "[{n 5} {t 2} {b 3} {y 6} {x 7}]"},
		{1, 0, "[{n 5} {t 1} {b 3} {y 6} {x 7}]"}, {0, 1, "[{n 5} {t 1} {b 3} {y 6} {x 7}]"},
		{0, 4, "[{n 5} {t 4} {b 3} {y 6} {x 7}]"}, {2, 4, "[{n 5} {t 8} {b 3} {y 6} {x 7}]"},
	} {
		field := spec.Field{Name: "image", Kind: spec.RasterField, DType: "native", Layout: spec.DefaultLayout}
		r, err := newRaster(field, 0, small(chunk.Uint8, c.times))
		if err != nil {
			t.Fatal(err)
		}
		r.H, r.W, r.Steps = 6, 7, c.steps
		if got := fmt.Sprint(r.Axes(5)); got != c.want {
			t.Errorf("%d steps in files, %d in sequences: %s, want %s", c.times, c.steps, got, c.want)
		}
	}
}
