package recipe_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/ops/recipe"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// labelAt is the class of a pixel of scene k; 9 is nodata.
func labelAt(k, y, x int) byte { return byte((y/13*7 + x/17*3 + k*5) % 10) }

// labels writes scenes with labels beside them.
func labels(t *testing.T, n int) string {
	t.Helper()
	dir := scenes(t, n)
	for k := range n {
		pixels := make([]byte, side*side)
		for i := range pixels {
			pixels[i] = labelAt(k, i/side, i%side)
		}
		var w bytes.Buffer
		err := tiff.WriteTOG(&w, pixels, tiff.TOGOptions{Shape: [3]int{1, side, side}, DType: chunk.Uint8, Tile: 32,
			Level: 1, NoData: "9", Geo: tiff.Geo{EPSG: 32630, HasTransform: true, Transform: transform(k, 10)}})
		if err == nil {
			err = os.MkdirAll(filepath.Join(dir, "lab"), 0o777)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "lab", fmt.Sprintf("s%d.tif", k)), w.Bytes(), 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// labelled returns the files of those samples of a container of which share of the mask is of one of the classes.
func labelled(t *testing.T, out string, classes []int64, share float64) (files []string) {
	t.Helper()
	all := leaves(t, out)
	for i := 0; i < len(all); i += 2 { // an image and its mask
		id, _, _ := strings.Cut(all[i], "/")
		a, err := raster.Read(t.Context(), []string{out + "::" + id + "/mask"}, raster.ReadOptions{Validity: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, class := range classes {
			count := 0
			for i, v := range a.Data {
				if a.Valid[i] == 1 && int64(v) == class {
					count++
				}
			}
			if count > 0 && float64(count) >= share*float64(len(a.Data)) {
				files = append(files, all[i:i+2]...)
				break
			}
		}
		a.Release()
	}
	return files
}

// TestLabels: of the chips of a recipe, those stay that have enough pixels of a class by a count of the pixels of all
// chips. Others are counted, with the same bytes and statistics for any number of workers, after an interruption and in
// parts.
func TestLabels(t *testing.T) {
	unsynced(t)
	dir := labels(t, 2)
	drawHouses(t, filepath.Join(dir, "houses.geojson"))
	raster := "\nfields:\n  - {name: image, pattern: \"img/{id}.tif\", codec: {level: 3}}\n" +
		"  - {name: mask, pattern: \"lab/{id}.tif\", codec: {level: 3}}\n"
	for i, c := range []struct {
		text    string
		classes []int64
		share   float64
	}{
		{"source: .\nwindows: {kind: grid, size: 40, stride: 35, pad: true}" + raster, []int64{3, 7}, 0.15},
		{"source: .\nwindows: {kind: random, size: 24, per_file: 6, seed: 5}" + raster, []int64{9, 4}, 0},
		{"source: .\nwindows: {kind: random, size: 30, per_file: 6}" + raster, []int64{0, 300, -1}, 0.2},
		{"source: img\nwindows: {kind: ground, size_m: 320, resolution: 10, stride_m: 320}\nfields:\n" +
			"  - {name: image, codec: {level: 3}}" + ofHouses, []int64{2}, 0.25},
	} {
		if testing.Short() && i%3 != 0 {
			continue // the goroutines of random windows are those of a grid
		}
		all, _, err := create(t, dir, c.text, 2)
		if err != nil {
			t.Fatal(err)
		}
		want := labelled(t, all, c.classes, c.share)
		had := len(leaves(t, all))
		if len(want) == 0 || len(want) == had {
			t.Fatalf("%s: %d files of %d have labels", c.text, len(want), had)
		}
		text := fmt.Sprintf("%s\nquality: {labels: {field: mask, classes: %s, min_share: %g}}\n", c.text,
			strings.ReplaceAll(fmt.Sprint(c.classes), " ", ", "), c.share)
		everyWay(t, dir, text, ways{[]int{1, 7}, []int64{3}}, func(what, out string,
			res *recipe.Result) {
			left := (had - len(want)) / 2
			if have := leaves(t, out); !slices.Equal(have, want) || int(res.Unlabelled) != left ||
				!strings.Contains(res.LeftOut(), fmt.Sprintf("%d have too few pixels of the classes", left)) {
				t.Errorf("%s, %s: %d files, want %d: %+v", text, what, len(have), len(want), res)
			}
		})
	}
}

// TestWeightedWindows: windows by weights lie around pixels of the class that was counted, by the arithmetic that drew
// the labels, with the same bytes for any number of workers, after an interruption and in parts.
func TestWeightedWindows(t *testing.T) {
	race.SkipCovered(t)
	unsynced(t)
	dir := labels(t, 2)
	fields := []spec.Field{
		{Name: "image", Kind: spec.RasterField, Pattern: "img/{id}.tif"},
		{Name: "mask", Kind: spec.RasterField, Pattern: "lab/{id}.tif"},
	}
	var w bytes.Buffer
	// Cells of one pixel say of each pixel whether it has the class.
	err := survey.Weights(t.Context(), &w, spec.Spec{Source: dir, Fields: fields, BatchSize: 1},
		resources.Options{}, survey.WeightOptions{Field: "mask", Classes: []float64{3}, Cell: 1}, nil, nil)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "three.weights"), w.Bytes(), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	const size, perFile = 6, 20
	rest := fmt.Sprintf("size: %d, per_file: %d, seed: 5}\nfields:\n  - {name: image, pattern: \"img/{id}.tif\"}\n"+
		"  - {name: mask, pattern: \"lab/{id}.tif\"}\nstatistics: false\n", size, perFile)
	random, _, err := create(t, dir, "source: .\nwindows: {kind: random, "+rest, 1)
	if err != nil {
		t.Fatal(err)
	}
	if all, have := windowsOf(t, random, size, 3); all != 2*perFile || have > all/2 {
		t.Fatalf("%d of %d random windows have the class, by which weights could not be told from chance", have, all)
	}
	text := "source: .\nwindows: {kind: weighted, weights: three.weights, " + rest
	everyWay(t, dir, text, ways{[]int{1, 7}, []int64{3}}, func(what, out string, _ *recipe.Result) {
		if all, have := windowsOf(t, out, size, 3); all != 2*perFile || have != all {
			t.Errorf("%s: %d of %d windows have the class", what, have, all)
		}
	})
}

// windowsOf counts the chips of a container, and those with a pixel of a class in the window that their ids name.
func windowsOf(t *testing.T, out string, size int, class byte) (all, have int) {
	t.Helper()
	samples(t, out, func(ctx context.Context, d *taco.Dataset, row int) {
		e, err := d.Entry(ctx, 0, row)
		if err != nil {
			t.Fatal(err)
		}
		id := e.ID
		var k, top, left int
		if _, err := fmt.Sscanf(id, "img_s%d_y%d_x%d", &k, &top, &left); err != nil {
			t.Fatalf("id %q: %v", id, err)
		}
		all++
		for i := range size * size {
			if labelAt(k, top+i/size, left+i%size) == class {
				have++
				return
			}
		}
	})
	return all, have
}

// ways are how everyWay makes a recipe: with numbers of workers, and in parts.
type ways struct {
	workers []int
	parts   []int64
}

// everyWay makes a recipe in all ways: the bytes must be equal.
func everyWay(t *testing.T, dir, text string, w ways, look func(what, out string, res *recipe.Result)) {
	t.Helper()
	var first []byte
	same := func(what, out string, res *recipe.Result, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(what, err)
		}
		b, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = b
		}
		if !bytes.Equal(b, first) {
			t.Errorf("%s: other bytes", what)
		}
		look(what, out, res)
	}
	for _, workers := range w.workers {
		out, res, err := create(t, dir, text, workers)
		same(fmt.Sprint(workers), out, res, err)
	}
	r := parsed(t, text)
	for _, n := range w.parts {
		all := parts(t, r, dir, n)
		out := filepath.Join(t.TempDir(), "out.tacozip")
		res, err := joined(t, r, out, all, recipe.Options{Base: dir})
		same("parts", out, res, err)
	}
}

// TestNoLabels: a class that no chip has leaves none, and the labels must be one band of whole numbers.
func TestNoLabels(t *testing.T) {
	dir := labels(t, 1)
	for text, want := range map[string]string{
		"source: lab\nwindows: {kind: grid, size: 50}\nquality: {labels: {field: image, classes: [77]}}\n": "none is " +
			"left of 4 windows: 0 cannot be read, 0 do not lie together, 0 have too much nodata, 4 have too few pixels",
		"source: img\nbad_samples: skip\nquality: {labels: {field: image, classes: [77]}}\n": "a chip has 3 bands",
	} {
		if out, _, err := create(t, dir, text, 2); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", out, err, want)
		}
	}
	if _, _, err := create(t, dir, "source: img\nfields: [{bands: [1]}]\nquality: {labels: {field: image, classes: "+
		"[77]}}\n", 1); !errors.Is(err, fault.NotFound) {
		t.Error(err)
	}
	float := filepath.Join(dir, "float.tif")
	var w bytes.Buffer
	err := tiff.WriteTOG(&w, make([]byte, 4*32*32), tiff.TOGOptions{Shape: [3]int{1, 32, 32}, DType: chunk.Float32,
		Tile: 32, Level: 1})
	if err == nil {
		err = os.WriteFile(float, w.Bytes(), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	r := parsed(t, "source: "+float+"\nquality: {labels: {field: image, classes: [0]}}\n")
	_, err = recipe.Make(t.Context(), r, filepath.Join(t.TempDir(), "out.tacozip"),
		recipe.Options{Loader: loader.Options{Workers: 1}})
	if !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "float.tif: field image") ||
		!strings.Contains(err.Error(), "float32") {
		t.Errorf("labels of float32: %v", err)
	}
}
