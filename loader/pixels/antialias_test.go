package pixels

import (
	"context"
	"strings"
	"testing"

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

// fineSide is the height and the width of a fineScene.
const fineSide = 64

// fineScene is a scene of fineSide by fineSide pixels, and a window of h by w pixels, whose corner it has, and whose
// pixels are factor times as high and wide. A field resamples it with antialiasing.
type fineScene struct {
	field   *Raster
	asset   catalog.Asset
	mapping *warp.Mapping
	lay     *Lay
	samples []byte
	row     *Row
}

func newFineScene(t *testing.T, h, w, factor int) *fineScene {
	t.Helper()
	x := &chunk.Index{Bands: 1, Height: fineSide, Width: fineSide, ChunkB: 1, ChunkH: fineSide, ChunkW: fineSide,
		DType: chunk.Uint8, Predictor: chunk.NoPredictor, Ranges: []chunk.Range{{Len: fineSide * fineSide}}}
	s := &fineScene{samples: make([]byte, fineSide*fineSide)}
	for i := range s.samples {
		s.samples[i] = byte(i * i / 7)
	}
	f, err := NewRaster(spec.Field{DType: "float32", Layout: spec.DefaultLayout, Resample: spec.Antialias}, 0, x)
	if err != nil {
		t.Fatal(err)
	}
	f.SetSize(h, w)
	side := float64(factor)
	grid := [6]float64{500000, 1, 0, 5000000, 0, -1}
	s.field, s.asset = f, catalog.Asset{URI: "a.tif", Index: x}
	s.asset.Place = catalog.NewPlace(32631, &grid, fineSide, fineSide)
	window := warp.Raster{CRS: sameCRS, Transform: [6]float64{500000, side, 0, 5000000, 0, -side}, Height: h, Width: w}
	if s.mapping, err = OnGround(window, &s.asset); err != nil {
		t.Fatal(err)
	}
	s.lay = &Lay{stack: window, part: warp.Raster{CRS: sameCRS, Transform: grid, Height: fineSide, Width: fineSide}}
	plan, err := f.LayoutPattern.Plan(f.Axes(1), nil)
	if err != nil {
		t.Fatal(err)
	}
	convert, err := f.Final.Get(x, &f.PickedBands)
	if err != nil {
		t.Fatal(err)
	}
	s.row = &Row{Field: f, Plan: plan, Cv: convert, Win: shuffle.Box{H: h, W: w},
		Dst: einops.Target{Data: make([]byte, 4*plan.Len()), Mask: make([]byte, plan.Len())}}
	return s
}

// read reads the window, as one of a mosaic or of a stack.
func (s *fineScene) read(t *testing.T, ofStack bool) error {
	r := NewReader(resources.Options{Opener: folder.OneFile(s.samples)}.WithDefaults())
	if ofStack {
		return r.Warped(t.Context(), s.asset, s.lay, s.mapping, s.row.Win, s.row, 1<<20)
	}
	mosaic := r.Mosaic(s.row, spec.MosaicFirst)
	defer mosaic.End()
	return mosaic.Add(t.Context(), s.field, s.asset, s.field.Picked, s.mapping, true, 1<<20)
}

// TestAntialiasedScenes: a scene whose pixels are smaller than those of a window is resampled with antialiasing, as a
// window of the whole scene is. A tent over more than 1024 pixels is over the limit.
func TestAntialiasedScenes(t *testing.T) {
	for _, ofStack := range []bool{false, true} {
		for _, factor := range []int{2, 4, 8} {
			h := fineSide / factor
			s := newFineScene(t, h, h, factor)
			if err := s.read(t, ofStack); err != nil {
				t.Fatal(err)
			}
			scene := plane{fineSide, fineSide, func(y, x int) (float64, bool) {
				return float64(s.samples[y*fineSide+x]), true
			}}
			for i := range h * h {
				want, _ := scene.antialias(i/h, i%h, h, h)
				if got := number(s.row.Dst.Data, chunk.Float32, i); got != want || s.row.Dst.Mask[i] != 1 {
					t.Fatalf("stack %t, factor %d, pixel %d: %v, want %v", ofStack, factor, i, got, want)
				}
			}
		}
		if err := newFineScene(t, 2, 2, 1024).read(t, ofStack); err != nil {
			t.Errorf("stack %t, a tent at the limit: %v", ofStack, err)
		}
		if err := newFineScene(t, 2, 2, 1025).read(t, ofStack); fault.KindOf(err) != fault.Limit ||
			!strings.Contains(err.Error(), "antialias of 1025 by 1025 pixels to one") {
			t.Errorf("stack %t, a tent over the limit: %v", ofStack, err)
		}
	}
}

// TestWindowsOverTheLimit: a window is refused whose samples, or whose tents, need more memory than the limit, or whose
// file cannot be opened.
func TestWindowsOverTheLimit(t *testing.T) {
	s := newFineScene(t, 1, 1, 2)
	r := NewReader(resources.Options{Opener: folder.OneFile(s.samples)}.WithDefaults())
	one := shuffle.Box{H: 1, W: 1}
	for limit, kind := range map[int]fault.Kind{4: fault.Limit, 5: fault.Limit, 32*4 - 1: fault.Limit, 32 * 4: 0} {
		err := r.Resampled(t.Context(), s.asset, one, s.row, limit)
		if fault.KindOf(err) != kind || kind != 0 && !strings.HasPrefix(err.Error(), "a.tif: window: ") {
			t.Errorf("a pixel of 4 bytes, 1 of validity and 4 tents up to %d bytes: %v", limit, err)
		}
	}
	r.opener = without{"a.tif"}
	for name, read := range map[string]func() error{
		"resampled": func() error { return r.Resampled(t.Context(), s.asset, one, s.row, 1<<20) },
		"aligned": func() error {
			return r.Aligned(t.Context(), s.asset, &Lay{stack: s.lay.part, part: s.lay.part}, one, s.row, nil)
		},
		"warped": func() error {
			return r.Warped(t.Context(), s.asset, s.lay, s.mapping, one, s.row, 1<<20)
		},
	} {
		if err := read(); fault.KindOf(err) != fault.NotFound || !strings.HasPrefix(err.Error(), "a.tif: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFieldsThatKeepNodata: a field of stored samples without a fill and a validity has the samples as they are stored,
// also where they are nodata or masked, and does not open the file of the mask.
func TestFieldsThatKeepNodata(t *testing.T) {
	s, value := newFineScene(t, 1, 1, 2), float64(3)
	x := *s.asset.Index
	x.NoData, x.Mask = &value, s.asset.Index
	a := catalog.Asset{URI: "a.tif", Index: &x, MaskFile: &catalog.Asset{URI: "mask", Index: s.asset.Index}}
	f, err := NewRaster(spec.Field{DType: "native", Layout: spec.DefaultLayout}, 0, &x)
	if err != nil {
		t.Fatal(err)
	}
	f.SetSize(fineSide, fineSide)
	plan, err := f.LayoutPattern.Plan(f.Axes(1), nil)
	if err != nil {
		t.Fatal(err)
	}
	convert, err := f.Final.Get(&x, &f.PickedBands)
	if err != nil {
		t.Fatal(err)
	}
	all, box := shuffle.Box{H: fineSide, W: fineSide}, chunk.Box{Y1: fineSide, X1: fineSide}
	for _, resampled := range []bool{false, true} {
		row := &Row{Field: f, Plan: plan, Cv: convert, Win: all, Dst: einops.Target{Data: make([]byte, plan.Len())}}
		r := NewReader(resources.Options{Opener: onlyImage{s.samples}}.WithDefaults())
		if resampled {
			err = r.Resampled(t.Context(), a, all, row, 1<<20)
		} else {
			err = r.Read(t.Context(), a, box, f.Picked, row, row.Masked(f.Final, box))
		}
		if err != nil || string(row.Dst.Data) != string(s.samples) {
			t.Errorf("resampled %t: other samples, or %v", resampled, err)
		}
	}
}

// onlyImage opens the file of an image, and no mask.
type onlyImage struct{ content []byte }

func (o onlyImage) Open(ctx context.Context, uri string) (source.Reader, error) {
	if uri != "a.tif" {
		return nil, fault.New(fault.NotFound, "file", "it is not there")
	}
	return folder.OneFile(o.content).Open(ctx, uri)
}
