package loader_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/catalog/build"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tiff/tog"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// orientations are the first column of the pixel steps of a raster at a place, without its origin: north up, its seven
// mirrored and turned forms, and two rotated by an angle.
func orientations(size float64) (out [][4]float64) {
	for _, right := range []float64{size, -size} {
		for _, down := range []float64{size, -size} {
			out = append(out, [4]float64{right, 0, 0, down}, [4]float64{0, right, down, 0})
		}
	}
	for _, degrees := range []float64{20, 200} {
		sin, cos := math.Sincos(degrees * math.Pi / 180)
		out = append(out, [4]float64{cos * size, sin * size, sin * size, -cos * size})
	}
	return out
}

// writeOriented writes images and masks in all orientations into a directory, and a catalog of both. Each mask lies as
// its image does, but mirrors, the numbers of some, are stored upside down.
func writeOriented(t *testing.T, n int, mirrors ...int) (dir, pairs string) {
	t.Helper()
	const size = 4.0
	dir = t.TempDir()
	random := rand.New(rand.NewPCG(1, uint64(n)))
	for i, step := range orientations(size) {
		// Around one centre, so that windows on the ground meet all of them.
		half := float64(n) / 2
		origin := [2]float64{500000 - half*(step[0]+step[1]), 4600000 - half*(step[2]+step[3])}
		transform := [6]float64{origin[0], step[0], step[1], origin[1], step[2], step[3]}
		pixels := make([]byte, n*n)
		for k := range pixels {
			pixels[k] = byte(1 + random.IntN(255))
		}
		writeRaster(t, filepath.Join(dir, fmt.Sprintf("images/%02d.tif", i)), pixels, n, 32630, transform)
		for _, mirrored := range mirrors {
			if i == mirrored { // the same bounds, with the first row of pixels at the other side
				transform[0] += float64(n) * transform[2]
				transform[3] += float64(n) * transform[5]
				transform[2], transform[5] = -transform[2], -transform[5]
			}
		}
		writeRaster(t, filepath.Join(dir, fmt.Sprintf("masks/%02d.tif", i)), pixels, n, 32630, transform)
	}
	return dir, pairsCatalog(t, dir)
}

// pairsCatalog writes a catalog of the images and masks in a directory, and returns its path.
func pairsCatalog(t *testing.T, dir string) string {
	t.Helper()
	var b bytes.Buffer
	fields := []catalog.Source{{Field: "image", Pattern: "images/{id}.tif"}, {Field: "mask", Pattern: "masks/{id}.tif"}}
	if _, err := build.Write(t.Context(), &b, []string{dir}, build.Options{Base: dir, Fields: fields}); err != nil {
		t.Fatal(err)
	}
	pairs := filepath.Join(dir, "pairs.parquet")
	testfile.Write(t, pairs, b.Bytes())
	return pairs
}

// TestCatalogsKeepOrientation promises that a catalog gives the same batches as its files, however the rasters lie:
// pixels, places and shapes of every sampler, drawn and cut.
func TestCatalogsKeepOrientation(t *testing.T) {
	race.SkipCovered(t)
	dir, pairs := writeOriented(t, 64)
	shapes := filepath.Join(vectorFiles, "utm.parquet")
	for name, sampler := range map[string]loader.Sampler{
		"chip":   {},
		"random": {Kind: spec.RandomWindow, Height: 24, Width: 24, PerAsset: 3},
		"grid":   {Kind: spec.GridWindow, Height: 24, Width: 24},
		"ground": {Kind: spec.GeoWindow, GeoWindows: spec.GeoWindows{SizeM: 96, Resolution: 4, PerEpoch: 24}},
	} {
		t.Run(name, func(t *testing.T) {
			s := loader.Spec{Source: dir, BatchSize: 4, Shuffle: true, Seed: 3, Geo: true, Sampler: sampler,
				Fields: []loader.Field{{Name: "image", Pattern: "images/{id}.tif"},
					{Name: "mask", Pattern: "masks/{id}.tif"},
					{Name: "drawn", Vector: &spec.Vector{Path: shapes, Column: "value", DType: "uint8"}},
					{Name: "boxes", Vector: &spec.Vector{Path: shapes, Column: "value", Kind: "boxes"}}}}
			files := mustOpen(t, s, loader.Options{})
			s.Source = pairs
			s.Fields[0].Pattern, s.Fields[1].Pattern = "", ""
			sameBatches(t, mustOpen(t, s, loader.Options{}), files)
		})
	}
}

// TestCatalogsRefuseMirroredMasks promises that a mask stored upside down beside its image is misplaced in a catalog,
// too, with the same error as in the directory.
func TestCatalogsRefuseMirroredMasks(t *testing.T) {
	race.SkipCovered(t)
	for mirrored := range orientations(1) {
		dir, pairs := writeOriented(t, 16, mirrored)
		s := loader.Spec{Source: dir, BatchSize: 16, Fields: []loader.Field{
			{Name: "image", Pattern: "images/{id}.tif"}, {Name: "mask", Pattern: "masks/{id}.tif"}}}
		want := misplacedIn(t, s)
		s.Source, s.Fields = pairs, []loader.Field{{Name: "image"}, {Name: "mask"}}
		got := misplacedIn(t, s)
		if !strings.HasSuffix(want, "its rows or columns run another way: misplaced") || got != want {
			t.Errorf("orientation %d: the catalog says %q, the directory %q", mirrored, got, want)
		}
	}
}

// misplacedIn returns what the error of the first batch of a spec says after the name of the file, without names of
// directories. It returns "" if the error is not of kind fault.Misplaced.
func misplacedIn(t *testing.T, s loader.Spec) string {
	t.Helper()
	e, err := loader.Open(t.Context(), s, loader.Options{})
	if err == nil {
		defer e.Close()
		var b *batch.Batch
		ticket := steps.StepTicket(0, 0, s.BatchSize, 0, 1)
		if b, err = e.Start(t.Context(), ticket, false).Wait(t.Context()); err == nil {
			b.Release()
		}
	}
	if err == nil || fault.KindOf(err) != fault.Misplaced {
		return ""
	}
	text := strings.ReplaceAll(err.Error(), filepath.Dir(s.Source)+"/", "")
	text = strings.ReplaceAll(text, filepath.Base(s.Source)+"/", "")
	return text[max(0, strings.Index(text, "it lies at")):]
}

// boundsRow is a row of a catalog by another program, which has bounds without a transform.
type boundsRow struct {
	URI    string  `parquet:"uri"`
	Index  []byte  `parquet:"chaski:index"`
	Height int32   `parquet:"height"`
	Width  int32   `parquet:"width"`
	EPSG   int32   `parquet:"epsg"`
	MinX   float64 `parquet:"minx"`
	MinY   float64 `parquet:"miny"`
	MaxX   float64 `parquet:"maxx"`
	MaxY   float64 `parquet:"maxy"`
}

// otherRow is a row of a catalog by another program, whose transform has rasterio's order of numbers.
type otherRow struct {
	boundsRow
	Transform []float64 `parquet:"transform,list"`
}

// TestCatalogsWithOtherTransforms promises that a transform that contradicts the bounds is not taken.
func TestCatalogsWithOtherTransforms(t *testing.T) {
	dir := t.TempDir()
	rows := boundsRows(t, dir)
	path := filepath.Join(dir, "other.parquet")
	other := []otherRow{{rows[0], []float64{10, 0, 500000, 0, 10, 4.6e6}}}
	if err := parquet.WriteFile(path, other); err != nil {
		t.Fatal(err)
	}
	s := loader.Spec{Source: path, BatchSize: 1, Geo: true, Fields: []loader.Field{{Name: "image", Column: "uri"}}}
	want := []float64{500000, 10, 0, 4600320, 0, -10}
	if got := first(t, mustOpen(t, s, loader.Options{})).Tensor("geo.transform").Float64(); !slices.Equal(got, want) {
		t.Errorf("transform %v, want one by the bounds, %v", got, want)
	}
}

// boundsRows writes a raster into a directory, and returns its row in a catalog, without its transform.
func boundsRows(t *testing.T, dir string) []boundsRow {
	t.Helper()
	writeRaster(t, filepath.Join(dir, "a.tif"), make([]byte, 32*32), 32, 32630, [6]float64{500000, 10, 0, 4.6e6, 0, 10})
	var whole bytes.Buffer
	if _, err := build.Write(t.Context(), &whole, []string{dir}, build.Options{Base: dir}); err != nil {
		t.Fatal(err)
	}
	rows, err := parquet.Read[boundsRow](bytes.NewReader(whole.Bytes()), int64(whole.Len()))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestCatalogsWithBoundsAlone promises that rasters of a catalog without transforms are taken to have north up, and
// that the log says so.
func TestCatalogsWithBoundsAlone(t *testing.T) {
	dir := t.TempDir()
	rows := boundsRows(t, dir)
	path := filepath.Join(dir, "bounds.parquet")
	if err := parquet.WriteFile(path, rows); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	s := loader.Spec{Source: path, BatchSize: 1, Geo: true, Fields: []loader.Field{{Name: "image", Column: "uri"}}}
	e := mustOpen(t, s, loader.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	want := []float64{500000, 10, 0, 4600320, 0, -10}
	if got := first(t, e).Tensor("geo.transform").Float64(); !slices.Equal(got, want) {
		t.Errorf("transform %v, want one with north up, %v", got, want)
	}
	if !strings.Contains(log.String(), "bounds without transforms") {
		t.Errorf("the log says %q", log.String())
	}
}

// writeLAEA writes a raster in a CRS without a code: Lambert's azimuthal equal area around a place.
func writeLAEA(t *testing.T, path string, lat, lon float64) {
	t.Helper()
	const n, user = 32, 32767
	o := tog.Options{Shape: [3]int{1, n, n}, DType: chunk.Uint8, Tile: 16, Geo: tiff.Geo{HasTransform: true,
		Transform: [6]float64{4000000, 10, 0, 3000000, 0, -10},
		// GeoTIFF 1.1, section 7: model, raster type, geographic CRS, projected CRS, projection, method, unit, centre.
		GeoKeys: []uint16{1, 1, 0, 9, 1024, 0, 1, 1, 1025, 0, 1, 1, 2048, 0, 1, 4326, 3072, 0, 1, user, 3074, 0, 1,
			user, 3075, 0, 1, 10, 3076, 0, 1, 9001, 3088, 34736, 1, 0, 3089, 34736, 1, 1},
		GeoDoubles: []float64{lon, lat}}}
	var b bytes.Buffer
	if err := tog.Write(&b, make([]byte, n*n), o); err != nil {
		t.Fatal(err)
	}
	testfile.Write(t, path, b.Bytes())
}

// TestCRSsWithoutACode promises that two rasters whose CRSs have no code lie together only if the parameters are equal,
// in a directory and in its catalog.
func TestCRSsWithoutACode(t *testing.T) {
	for lat, misplaced := range map[float64]bool{45: false, 46: true} {
		dir := t.TempDir()
		writeLAEA(t, filepath.Join(dir, "images/1.tif"), 45, 11)
		writeLAEA(t, filepath.Join(dir, "masks/1.tif"), lat, 11)
		pairs := pairsCatalog(t, dir)
		s := loader.Spec{Source: dir, BatchSize: 1, Fields: []loader.Field{
			{Name: "image", Pattern: "images/{id}.tif"}, {Name: "mask", Pattern: "masks/{id}.tif"}}}
		want := misplacedIn(t, s)
		s.Source, s.Fields = pairs, []loader.Field{{Name: "image"}, {Name: "mask"}}
		got := misplacedIn(t, s)
		if strings.HasSuffix(want, "the CRSs differ: misplaced") != misplaced || got != want {
			t.Errorf("centre %v: the catalog says %q, the directory %q", lat, got, want)
		}
		s.Source = dir
		s.Fields = []loader.Field{{Name: "both", Patterns: []string{"images/{id}.tif", "masks/{id}.tif"}}}
		if got := misplacedIn(t, s); (got != "") != misplaced {
			t.Errorf("centre %v: a stack says %q", lat, got)
		}
	}
}
