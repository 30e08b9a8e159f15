package loader_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tiff/tog"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

const (
	pyramidSide  = 128 // pixels of 10 m
	pyramidWest  = 500000
	pyramidNorth = 4.6e6
)

// pyramidPixel is the sample of level k (0: the raster) at a row and column of the level. Levels have samples of their
// own, so that one says where it was read.
func pyramidPixel(k, y, x int) byte { return byte(1 + 80*k + (3*y+x)%70) }

// pyramidMasked reports whether a pixel of a level is masked: in the overviews others than in the raster.
func pyramidMasked(k, y, x int) bool { return (y+x)%11 == k }

// pyramid returns a TIFF with overviews of 20 and 40 m, each of pixels of its own. With masks only the first ones of
// its levels have one. The TIFF has levels from to to.
func pyramid(t *testing.T, masks, from, to int) []byte {
	t.Helper()
	level := func(k int) (pix, mask []byte) {
		n := pyramidSide >> k
		for i := range n * n {
			pix = append(pix, pyramidPixel(k, i/n, i%n))
			mask = append(mask, byte(boolOf(!pyramidMasked(k, i/n, i%n))))
		}
		if k >= masks {
			mask = nil
		}
		return pix, mask
	}
	pix, mask := level(from)
	o := tog.Options{Shape: [3]int{1, pyramidSide >> from, pyramidSide >> from}, DType: chunk.Uint8,
		Tile: 16, Mask: mask,
		Geo: tiff.Geo{EPSG: 32630, Transform: [6]float64{pyramidWest, 10, 0, pyramidNorth, 0, -10}, HasTransform: true}}
	for k := from + 1; k <= to; k++ {
		v := tog.Overview{Height: pyramidSide >> k, Width: pyramidSide >> k}
		v.Pixels, v.Mask = level(k)
		o.Overviews = append(o.Overviews, v)
	}
	var b bytes.Buffer
	if err := tog.Write(&b, pix, o); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func boolOf(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestGeoWindowOverviews: a window that is coarser than a scene has the pixels and the mask of the overview on its
// grid, for the fields that the spec says, and explain names the level. Without such an overview, with a finer window,
// or where a field reads none, the pixels are those of the raster. The overviews lie in the file, or in one beside it.
func TestGeoWindowOverviews(t *testing.T) {
	race.SkipCovered(t)
	for _, c := range []groundLevels{
		{"", 20, 3, 1, 0}, {"none", 20, 3, 0, 0}, {"all", 20, 3, 1, 1},
		{"", 40, 3, 2, 0}, {"all", 40, 0, 2, 2}, {"", 10, 3, 0, 0},
		{"", 40, 2, 1, 0}, // the overview of 40 m has no mask
		{"all", 40, 1, 0, 0},
		{"all", 30, 0, 1, 1}, {"all", 80, 0, 2, 2},
	} {
		for _, beside := range []bool{false, true} {
			testGeoWindowOverviews(t, c, beside)
		}
	}
}

// groundLevels is a case of TestGeoWindowOverviews.
type groundLevels struct {
	rule        string
	resolution  float64
	masks       int
	soft, sharp int // the level that each field reads
}

func testGeoWindowOverviews(t *testing.T, c groundLevels, beside bool) {
	t.Run(fmt.Sprintf("%q of %v m, %d masks, beside: %v", c.rule, c.resolution, c.masks, beside), func(t *testing.T) {
		path, own := filepath.Join(t.TempDir(), "a.tif"), 2
		if beside {
			own = 0
			testfile.Write(t, path+".ovr", pyramid(t, c.masks, 1, 2))
		}
		testfile.Write(t, path, pyramid(t, c.masks, 0, own))
		e := mustOpen(t, loader.Spec{Source: filepath.Dir(path), BatchSize: 4, Seed: 3, Geo: true,
			Fields: []loader.Field{{Name: "soft", DType: "float32", Validity: "soft_ok"},
				{Name: "sharp", DType: "native", ByPosition: true, Validity: "sharp_ok"}},
			Sampler: loader.Sampler{Kind: spec.GeoWindow, GeoWindows: spec.GeoWindows{SizeM: 8 * c.resolution,
				Resolution: c.resolution, PerEpoch: 4, Overviews: spec.Text(c.rule)}}}, loader.Options{})
		later := time.Now().Add(time.Hour) // as of a copy: the index is compared again
		if err := os.Chtimes(path, later, later); err != nil {
			t.Fatal(err)
		}
		ticket := steps.StepTicket(0, 0, 4, 0, 1)
		explained, err := e.Explain(t.Context(), ticket)
		if err != nil {
			t.Fatal(err)
		}
		b := first(t, e)
		defer b.Release()
		for k, row := range explained {
			at := floatsOf(b.Tensor("geo.transform"))[6*k:]
			for i, level := range []int{c.soft, c.sharp} {
				a := row.Assets[i]
				if got := a.Overview; (got == nil) != (level == 0) || got != nil && *got != level-1 {
					t.Errorf("%s: overview %v, want %d", a.Field, got, level-1)
				}
				if in := strings.HasSuffix(a.URI, ".ovr"); in != (beside && level > 0) {
					t.Errorf("%s: level %d is read from %s", a.Field, level, a.URI)
				}
				if want := pyramidSide >> level; a.Size.H != want || a.Size.W != want {
					t.Errorf("%s: of %v pixels, want %d", a.Field, a.Size, want)
				}
				checkPyramid(t, b, a.Field, k, level, c.resolution, at, level < c.masks)
			}
		}
	})
}

// checkPyramid compares row k of a field with a level of a pyramid, if the field is on its grid or takes the nearest.
func checkPyramid(t *testing.T, b *batch.Batch, field string, k, level int, resolution float64, at []float64,
	masked bool) {
	t.Helper()
	pixel := float64(int(10) << level)
	if field == "soft" && pixel != resolution {
		return // blended pixels: see the tests of the kernels
	}
	valid := b.Tensor(field + "_ok").Data[64*k:]
	for i := range 64 {
		x := int((at[0] + (float64(i%8)+0.5)*resolution - pyramidWest) / pixel)
		y := int((pyramidNorth - at[3] + (float64(i/8)+0.5)*resolution) / pixel)
		want, ok := float64(pyramidPixel(level, y, x)), !masked || !pyramidMasked(level, y, x)
		var got float64
		if field == "soft" {
			got = float64(b.Tensor(field).Float32()[64*k+i])
		} else {
			got = float64(b.Tensor(field).Data[64*k+i])
		}
		if (valid[i] != 0) != ok || ok && got != want {
			t.Fatalf("%s: row %d, pixel %d is %v (%d), want %v (%v) of level %d", field, k, i, got, valid[i], want, ok,
				level)
		}
	}
}

// TestStackReadsOverviews: a part of a stack whose grid is coarser is read from the overview of that grid, pixels and
// mask, in its file or in the one beside it; by nearest it is read itself. Explain names the level, and the tile cache
// keeps levels apart.
func TestStackReadsOverviews(t *testing.T) {
	race.SkipCovered(t)
	for _, c := range []struct {
		grid     spec.Grid
		resample string
		sampler  loader.Sampler
		level    int
	}{
		{20, "", loader.Sampler{}, 1}, {40, "", loader.Sampler{}, 2}, {40, "antialias", loader.Sampler{}, 2},
		{20, "", loader.Sampler{Kind: spec.TileWindow, Height: 16, Width: 16, PerAsset: 2,
			TileWindows: spec.TileWindows{Pool: 8}}, 1},
		{40, "nearest", loader.Sampler{}, 0}, {10, "", loader.Sampler{}, 0},
	} {
		t.Run(fmt.Sprintf("%v m %s %s", c.grid, c.resample, c.sampler.Kind), func(t *testing.T) {
			dir := t.TempDir()
			for name, b := range map[string][]byte{"0-a.tif": pyramid(t, 3, 0, 2), "0-b.tif": pyramid(t, 3, 0, 0),
				"0-b.tif.ovr": pyramid(t, 3, 1, 2)} {
				testfile.Write(t, filepath.Join(dir, name), b)
			}
			e := mustOpen(t, loader.Spec{Source: dir, BatchSize: 1, Sampler: c.sampler, Fields: []loader.Field{{
				Name: "image", Patterns: []string{"{id}-a.tif", "{id}-b.tif"}, Grid: c.grid, Resample: c.resample,
				DType: "float32", Validity: "ok"}}}, loader.Options{})
			ticket := steps.StepTicket(0, 0, 1, 0, 1)
			explained, err := e.Explain(t.Context(), ticket)
			if err != nil {
				t.Fatal(err)
			}
			for i, a := range explained[0].Assets {
				if (a.Overview == nil) != (c.level == 0) || a.Overview != nil && *a.Overview != c.level-1 {
					t.Errorf("part %d: overview %v, want %d", i, a.Overview, c.level-1)
				}
				if beside := strings.HasSuffix(a.URI, ".ovr"); beside != (i == 1 && c.level > 0) {
					t.Errorf("part %d is read from %s", i, a.URI)
				}
			}
			b := first(t, e)
			defer b.Release()
			if c.level == 0 && c.grid != 10 {
				return // pixels by nearest: see the tests of stacks
			}
			win := explained[0].Assets[0].Window
			if c.sampler.Kind == spec.TileWindow { // it has the pixel around it that the tent needs, up to the edges
				win.Y, win.X = win.Y+min(win.Y, 1), win.X+min(win.X, 1)
			}
			checkStackLevel(t, b, c.level, win)
		})
	}
}

// checkStackLevel compares the bands of a batch's one row with window win of a level of a pyramid.
func checkStackLevel(t *testing.T, b *batch.Batch, level int, win shuffle.Box) {
	t.Helper()
	image, ok := b.Tensor("image"), b.Tensor("ok")
	n := int(image.Shape[3])
	for i, got := range image.Float32() {
		y, x := win.Y+i/n%n, win.X+i%n
		valid := !pyramidMasked(level, y, x)
		if (ok.Data[i] != 0) != valid || valid && got != float32(pyramidPixel(level, y, x)) {
			t.Fatalf("band %d, pixel %d, %d: %v (%d), want %v (%v)", i/n/n, y, x, got, ok.Data[i],
				pyramidPixel(level, y, x), valid)
		}
	}
}
