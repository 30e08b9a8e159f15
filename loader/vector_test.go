package loader_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tiff/tog"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// vectorFiles is the folder of the files that format/vector/testdata/shapes.py writes.
const vectorFiles = "../format/vector/testdata"

// writeRaster writes a square raster of one band of bytes, which lies at the ground.
func writeRaster(t *testing.T, path string, pixels []byte, n, epsg int, transform [6]float64) {
	t.Helper()
	o := tog.Options{Shape: [3]int{1, n, n}, DType: chunk.Uint8, Tile: 16,
		Geo: tiff.Geo{EPSG: epsg, Transform: transform, HasTransform: true}}
	var b bytes.Buffer
	if err := tog.Write(&b, pixels, o); err != nil {
		t.Fatal(err)
	}
	testfile.Write(t, path, b.Bytes())
}

// drawnMask is a row of masks.json: a window, and what rasterio draws there.
type drawnMask struct {
	File, Column string
	EPSG         int
	Transform    [6]float64
	Size         int
	Touched      bool
	Mask         []int32 // value, count, value, count, …
}

// compareMasks counts windows in which a field of shapes has other pixels than rasterio draws.
func compareMasks(t *testing.T, folder string) (windows, pixels, unlike int) {
	t.Helper()
	data := testfile.Read(t, filepath.Join(folder, "masks.json"))
	var cases []drawnMask
	if err := json.Unmarshal(data, &cases); err != nil || len(cases) == 0 {
		t.Fatal(len(cases), err)
	}
	covered := 0
	for i, c := range cases {
		if testing.Short() && i%4 != 0 {
			continue // each window is drawn by one goroutine
		}
		path := filepath.Join(t.TempDir(), "image.tif")
		writeRaster(t, path, make([]byte, c.Size*c.Size), c.Size, c.EPSG, c.Transform)
		v := &spec.Vector{Path: filepath.Join(folder, c.File+".parquet"), AllTouched: c.Touched, DType: "int32"}
		switch c.Column {
		case "instances":
			v.Kind = spec.InstanceVector
		case "class":
			v.Column, v.Classes = c.Column, []string{"field", "forest", "water"}
		default:
			v.Column = c.Column
		}
		e := mustOpen(t, loader.Spec{Source: path, BatchSize: 1,
			Fields: []loader.Field{{Name: "image"}, {Name: "mask", Vector: v}}}, loader.Options{})
		got := first(t, e).Tensor("mask")
		other := *v
		other.Path = filepath.Join(folder, c.File+".geojson")
		if _, err := os.Stat(other.Path); err == nil {
			e := mustOpen(t, loader.Spec{Source: path, BatchSize: 1,
				Fields: []loader.Field{{Name: "image"}, {Name: "mask", Vector: &other}}}, loader.Options{})
			if !bytes.Equal(first(t, e).Tensor("mask").Data, got.Data) {
				t.Errorf("window %d of %s is another one of its GeoJSON", i, c.File)
			}
		}
		if want := []int64{1, int64(c.Size), int64(c.Size)}; fmt.Sprint(got.Shape) != fmt.Sprint(want) {
			t.Fatalf("shape %v, want %v", got.Shape, want)
		}
		bad, at := 0, 0
		for k := 0; k < len(c.Mask); k += 2 {
			for range c.Mask[k+1] {
				value := int32(binary.LittleEndian.Uint32(got.Data[4*at:]))
				if at++; value != c.Mask[k] {
					bad++
				}
				if value != 0 {
					covered++
				}
			}
		}
		if windows, pixels, unlike = windows+1, pixels+at, unlike+bad; bad > 0 {
			t.Logf("window %d of %s, column %q, touched %v: %d of %d pixels", i, c.File, c.Column, c.Touched, bad, at)
		}
	}
	if covered < pixels/20 {
		t.Fatalf("only %d of %d pixels are covered by shapes", covered, pixels)
	}
	return windows, pixels, unlike
}

// TestMasks promises that a field of shapes has the pixels that rasterio draws of them: polygons with holes, lines and
// points, in the CRS of the image and in others, with numbers, classes and instances, of GeoParquet and GeoJSON.
func TestMasks(t *testing.T) {
	if windows, pixels, unlike := compareMasks(t, vectorFiles); unlike > 0 {
		t.Errorf("%d of %d pixels in %d windows are unlike rasterio's", unlike, pixels, windows)
	}
}

// TestMasksLikeRasterio: the same of 500 other windows. Shapes that PROJ and package crs place a few micrometres
// apart may touch a pixel or not, and GDAL of rasterio 1.5 touches a few pixels more.
func TestMasksLikeRasterio(t *testing.T) {
	python := os.Getenv("CHASKI_ORACLE_PYTHON")
	if python == "" {
		t.Skip("CHASKI_ORACLE_PYTHON names no Python with rasterio")
	}
	dir := t.TempDir()
	script := filepath.Join(vectorFiles, "shapes.py")
	out, err := exec.Command(python, "-W", "ignore", script, dir, "500").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	windows, pixels, unlike := compareMasks(t, dir)
	if t.Logf("%d of %d pixels in %d windows differ", unlike, pixels, windows); unlike > pixels/10_000 {
		t.Error("over 0.01 % of the pixels are unlike rasterio's")
	}
}

// vectorTwins makes a directory of images, and of masks that are drawn into the images as a whole. It returns a spec of
// both kinds of masks.
func vectorTwins(t *testing.T) loader.Spec {
	t.Helper()
	const n = 64
	dir := t.TempDir()
	v := &spec.Vector{Path: filepath.Join(vectorFiles, "utm.parquet"), Column: "value", DType: "uint8"}
	for i := range 5 {
		g := [6]float64{499600 + 100*float64(i), 4, 0, 4600300 - 50*float64(i), 0, -4}
		image := filepath.Join(dir, fmt.Sprintf("images/%d.tif", i))
		writeRaster(t, image, make([]byte, n*n), n, 32630, g)
		e := mustOpen(t, loader.Spec{Source: image, BatchSize: 1, Fields: []loader.Field{{Name: "image"},
			{Name: "drawn", Vector: v}}}, loader.Options{})
		drawn := first(t, e).Tensor("drawn").Data
		writeRaster(t, filepath.Join(dir, fmt.Sprintf("masks/%d.tif", i)), drawn, n, 32630, g)
	}
	return loader.Spec{Source: dir, BatchSize: 4, Shuffle: true, Seed: 3, Fields: []loader.Field{
		{Name: "image", Pattern: "images/{id}.tif"}, {Name: "mask", Pattern: "masks/{id}.tif"},
		{Name: "drawn", Vector: v}}}
}

// TestVectorWindows promises that shapes are drawn where the window of a row is, and turned with it: a raster of the
// same shapes has the same pixels in every sampler, for every rank, with padding and after a resume at any step.
func TestVectorWindows(t *testing.T) {
	s := vectorTwins(t)
	for name, sampler := range map[string]loader.Sampler{
		"chip":   {},
		"random": {Kind: spec.RandomWindow, Height: 24, Width: 24, PerAsset: 3},
		"grid":   {Kind: spec.GridWindow, Height: 24, Width: 24},
		"tiles":  {Kind: spec.TileWindow, Height: 24, Width: 24, TileWindows: spec.TileWindows{PerVisit: 2}},
	} {
		s.Sampler, s.Augment = sampler, "d4"
		e := mustOpen(t, s, loader.Options{})
		covered := 0
		for step := range e.Steps() {
			for rank := range 3 {
				b, err := e.Start(t.Context(), steps.Ticket{First: step * 4, Count: 4, RowStart: rank, RowStride: 3},
					false).Wait(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				mask, drawn := b.Tensor("mask"), b.Tensor("drawn")
				if !bytes.Equal(mask.Data, drawn.Data) {
					t.Errorf("%s: step %d of rank %d has other pixels than the raster", name, step, rank)
				}
				covered += len(drawn.Data) - bytes.Count(drawn.Data, []byte{0})
				b.Release()
			}
		}
		if covered == 0 {
			t.Errorf("%s: nothing is drawn", name)
		}
	}
}

// TestVectorsThatDoNotFit: what cannot be drawn is refused by name, at opening or as a bad sample.
func TestVectorsThatDoNotFit(t *testing.T) {
	image := filepath.Join(t.TempDir(), "image.tif")
	g := [6]float64{500000, 10, 0, 4.6e6, 0, -10}
	writeRaster(t, image, make([]byte, 256), 16, 32630, g)
	utm := filepath.Join(vectorFiles, "utm.parquet")
	other := filepath.Join(t.TempDir(), "shapes.gpkg")
	testfile.Write(t, other, []byte("SQLite format 3\x00"))
	for _, c := range []struct {
		v    spec.Vector
		kind fault.Kind
		says string
	}{
		{spec.Vector{}, 0, "path is empty"},
		{spec.Vector{Path: utm, Kind: "boxes", AllTouched: true}, 0, "all_touched is true"},
		{spec.Vector{Path: utm, Kind: "lines"}, 0, `must be one of mask, instances, boxes, polygons`},
		{spec.Vector{Path: utm, Kind: "instances", Column: "value"}, 0, "instances are numbers"},
		{spec.Vector{Path: utm, DType: "float64"}, 0, "dtype"},
		{spec.Vector{Path: utm, Column: "class", Classes: []string{"a", "a"}}, 0, "twice"},
		{spec.Vector{Path: utm, CRS: "EPSG:1"}, 0, `crs is "EPSG:1"`},
		{spec.Vector{Path: utm + "x"}, fault.NotFound, "utm.parquetx"},
		{spec.Vector{Path: other}, fault.Unsupported, "chaski.Vector(geopandas.read_file(FILE))"},
		{spec.Vector{Path: image}, fault.Unsupported, "not GeoParquet"},
		{spec.Vector{Path: utm, Column: "none"}, fault.NotFound, "none"},
		{spec.Vector{Path: utm, Column: "geometry"}, fault.Unsupported, "no numbers"},
		{spec.Vector{Path: utm, Column: "value", Classes: []string{"a"}}, fault.NotFound, "one of classes"},
		{spec.Vector{Path: utm, Column: "height", Classes: []string{"a"}}, fault.Unsupported, "not whole"},
		{spec.Vector{Path: utm, Column: "height", DType: "uint8"}, fault.Unsupported, "0.125"},
		{spec.Vector{Path: utm, Column: "height", Kind: "mask", DType: "int16"}, fault.Unsupported, "another dtype"},
		// From here on, of the sample.
		{spec.Vector{Path: utm, CRS: "EPSG:27700"}, fault.Unsupported, "EPSG:27700"},
	} {
		e, err := open(t, loader.Spec{Source: image, BatchSize: 1,
			Fields: []loader.Field{{Name: "image"}, {Name: "mask", Vector: &c.v}}}, loader.Options{})
		if err == nil {
			_, err = e.Start(t.Context(), steps.Ticket{Count: 1, RowStride: 1}, false).Wait(t.Context())
		}
		if err == nil || fault.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want %q of kind %v", c.v, err, c.says, c.kind)
		}
	}
	for name, fields := range map[string][]loader.Field{
		"alone":        {{Name: "mask", Vector: &spec.Vector{Path: utm}}},
		"with columns": {{Name: "image"}, {Name: "mask", Columns: []string{"a", "b"}, Vector: &spec.Vector{Path: utm}}},
		"with bands":   {{Name: "image"}, {Name: "mask", Bands: []int{0}, Vector: &spec.Vector{Path: utm}}},
	} {
		if _, err := open(t, loader.Spec{Source: image, BatchSize: 1, Fields: fields}, loader.Options{}); err == nil {
			t.Errorf("shapes %s are not refused", name)
		}
	}
}

// TestVectorsOfBadSamples promises that an image without a place is a bad sample under every policy, that its row is
// background, and that Check lists it.
func TestVectorsOfBadSamples(t *testing.T) {
	dir := t.TempDir()
	g := [6]float64{499900, 4, 0, 4600100, 0, -4}
	for i := range 3 {
		writeRaster(t, filepath.Join(dir, fmt.Sprintf("%d.tif", i)), make([]byte, 32*32), 32, 32630, g)
	}
	writePlaced(t, filepath.Join(dir, "none.tif"), 0, 0, 0, 1)
	s := loader.Spec{Source: dir, BatchSize: 4, Sampler: loader.Sampler{Kind: spec.RandomWindow, Height: 32, Width: 32},
		Fields: []loader.Field{{Name: "image"},
			{Name: "mask", Vector: &spec.Vector{Path: filepath.Join(vectorFiles, "utm.parquet")}}}}
	for policy, valid := range map[string]int{spec.BadSkip: 3, spec.BadFill: 4, spec.BadReplace: 4} {
		s.BadSamples = policy
		e := mustOpen(t, s, loader.Options{})
		b := first(t, e)
		if n := countValid(b); n != valid || len(b.Bad) != 1 || fault.KindOf(b.Bad[0].Err) != fault.Unsupported {
			t.Errorf("%s: %d valid rows, want %d, and %v", policy, n, valid, b.Bad)
		}
		drawn := b.Tensor("mask").Data[3*32*32:]
		if empty := bytes.Count(drawn, []byte{0}) == len(drawn); empty != (policy != spec.BadReplace) {
			t.Errorf("%s: the row is empty: %v", policy, empty)
		}
		r, err := e.Check(t.Context(), loader.CheckOptions{})
		if err != nil || r.Samples != 4 || r.Bad != 1 {
			t.Errorf("%s: check: %+v, %v", policy, r, err)
		}
	}
}

// TestVectorsStayBelowTheRoots promises that the file of shapes must lie below the roots of the engine.
func TestVectorsStayBelowTheRoots(t *testing.T) {
	dir := t.TempDir()
	image := filepath.Join(dir, "image.tif")
	writeRaster(t, image, make([]byte, 256), 16, 32630, [6]float64{500000, 10, 0, 4.6e6, 0, -10})
	outside, err := filepath.Abs(filepath.Join(vectorFiles, "utm.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	data := testfile.Read(t, outside)
	inside := filepath.Join(dir, "utm.parquet")
	testfile.Write(t, inside, data)
	link := filepath.Join(dir, "link.parquet")
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	for path, ok := range map[string]bool{inside: true, outside: false, link: false} {
		_, err := open(t, loader.Spec{Source: image, BatchSize: 1, Fields: []loader.Field{{Name: "image"},
			{Name: "mask", Vector: &spec.Vector{Path: path}}}}, loader.Options{Roots: []string{dir}})
		if (err == nil) != ok {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestNumbersOfVectors promises that a number that the dtype of a field cannot hold is refused, and no other.
func TestNumbersOfVectors(t *testing.T) {
	dir := t.TempDir()
	image, shapes := filepath.Join(dir, "image.tif"), filepath.Join(dir, "shapes.geojson")
	writeRaster(t, image, make([]byte, 256), 16, 4326, [6]float64{0, 1, 0, 16, 0, -1})
	for _, c := range []struct {
		value, dtype string
		ok           bool
	}{
		{"16777216", "float32", true}, {"16777217", "float32", false}, {"9223372036854775807", "float32", false},
		{"-9223372036854775808", "float32", true}, {"0.1", "float32", true}, {"1e300", "float32", false},
		{"9223372036854775808", "int64", false}, {"9223372036854775807", "int64", true}, {"2.0", "uint8", true},
		{"255", "uint8", true}, {"256", "uint8", false}, {"-1", "uint8", false}, {"-129e0", "int16", true},
	} {
		text := `{"type": "FeatureCollection", "features": [{"type": "Feature", "properties": {"v": ` + c.value +
			`}, "geometry": {"type": "Point", "coordinates": [1.5, 1.5]}}]}`
		testfile.Write(t, shapes, []byte(text))
		_, err := open(t, loader.Spec{Source: image, BatchSize: 1, Fields: []loader.Field{{Name: "image"},
			{Name: "mask", Vector: &spec.Vector{Path: shapes, Column: "v", DType: c.dtype}}}}, loader.Options{})
		if (err == nil) != c.ok || err != nil && fault.KindOf(err) != fault.Unsupported {
			t.Errorf("%s as %s: %v", c.value, c.dtype, err)
		}
	}
}

// TestVectorHash promises that the spec hash follows the shapes and not their path.
func TestVectorHash(t *testing.T) {
	image := filepath.Join(t.TempDir(), "image.tif")
	writeRaster(t, image, make([]byte, 256), 16, 32630, [6]float64{500000, 10, 0, 4.6e6, 0, -10})
	hash := func(v spec.Vector) string {
		return mustOpen(t, loader.Spec{Source: image, BatchSize: 1,
			Fields: []loader.Field{{Name: "image"}, {Name: "mask", Vector: &v}}}, loader.Options{}).Hash()
	}
	utm := filepath.Join(vectorFiles, "utm.parquet")
	data := testfile.Read(t, utm)
	moved := filepath.Join(t.TempDir(), "moved.parquet")
	testfile.Write(t, moved, data)
	want := hash(spec.Vector{Path: utm})
	if hash(spec.Vector{Path: moved}) != want {
		t.Error("the hash changes with the path")
	}
	for _, v := range []spec.Vector{{Path: filepath.Join(vectorFiles, "laea.parquet")}, {Path: utm, Column: "value"},
		{Path: utm, AllTouched: true}, {Path: utm, Kind: "instances"}} {
		if hash(v) == want {
			t.Errorf("%+v has the hash of another field", v)
		}
	}
}
