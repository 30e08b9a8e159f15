package loader_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// writePlaced writes a raster of 64 by 64 pixels, which lies at x, y if epsg is not 0.
func writePlaced(t *testing.T, path string, epsg int, x, y, size float64) {
	t.Helper()
	const n = 64
	o := tog.Options{Shape: [3]int{1, n, n}, DType: chunk.Uint8, Tile: 16}
	if epsg != 0 {
		o.Geo = tiff.Geo{EPSG: epsg, Transform: [6]float64{x, size, 0, y, 0, -size}, HasTransform: true}
	}
	var b bytes.Buffer
	if err := tog.Write(&b, make([]byte, n*n), o); err != nil {
		t.Fatal(err)
	}
	testfile.Write(t, path, b.Bytes())
}

// TestMasksThatLieElsewhere: of five masks one is shifted by 64 pixels and one lies in another CRS. Both are bad
// samples under every policy, in a directory and in catalogs of it, unless the field ignores the ground.
func TestMasksThatLieElsewhere(t *testing.T) {
	dir := t.TempDir()
	for i, c := range []struct {
		epsg       int
		x, y, size float64
	}{
		{32630, 500000, 4.6e6, 10},
		{32630, 500004, 4.6e6 - 4, 10},
		{32630, 500640, 4.6e6, 10},
		{4326, -3, 41.55, 1.3e-4},
		{0, 0, 0, 0},
	} {
		id := fmt.Sprintf("%d.tif", i)
		writePlaced(t, filepath.Join(dir, "images", id), 32630, 500000, 4.6e6, 10)
		writePlaced(t, filepath.Join(dir, "masks", id), c.epsg, c.x, c.y, c.size)
	}
	fields := []loader.Field{{Name: "image", Pattern: "images/{id}.tif", DType: "uint8"},
		{Name: "mask", Pattern: "masks/{id}.tif", DType: "uint8"}}
	sources := map[string][]loader.Field{dir: fields}
	for name, of := range map[string][]catalog.Source{"plain": nil,
		"paired": {{Field: "image", Pattern: "images/{id}.tif"}, {Field: "mask", Pattern: "masks/{id}.tif"}}} {
		var b bytes.Buffer
		if _, err := build.Write(t.Context(), &b, []string{dir}, build.Options{Base: dir, Fields: of}); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name+".parquet")
		testfile.Write(t, path, b.Bytes())
		sources[path] = fields
		if of != nil {
			sources[path] = []loader.Field{{Name: "image", DType: "uint8"}, {Name: "mask", DType: "uint8"}}
		}
	}
	for source, fields := range sources {
		s := loader.Spec{Source: source, Fields: fields, BatchSize: 5,
			Sampler: loader.Sampler{Kind: spec.RandomWindow, Height: 32, Width: 32}}
		for policy, valid := range map[string]int{spec.BadSkip: 3, spec.BadFill: 5, spec.BadReplace: 5} {
			s.BadSamples = policy
			b := first(t, mustOpen(t, s, loader.Options{}))
			if n := countValid(b); n != valid || len(b.Bad) != 2 {
				t.Errorf("%s %s: %d valid rows, want %d, and %d bad samples, want 2", source, policy, n, valid,
					len(b.Bad))
			}
			for _, bad := range b.Bad {
				if fault.KindOf(bad.Err) != fault.Misplaced {
					t.Errorf("%s %s: %v", source, policy, bad.Err)
				}
			}
		}
		s.BadSamples = spec.BadError
		e, err := loader.Open(t.Context(), s, loader.Options{})
		if catalogued := source != dir; catalogued != (err != nil) {
			t.Errorf("%s: opening says %v", source, err)
		}
		if err == nil {
			_, err = e.Start(t.Context(), steps.StepTicket(0, 0, 5, 0, 1), false).Wait(t.Context())
			e.Close()
		}
		if fault.KindOf(err) != fault.Misplaced {
			t.Errorf("%s: %v", source, err)
		}
		s.Fields = slices.Clone(fields)
		s.Fields[1].Ground = spec.IgnoreGround
		first(t, mustOpen(t, s, loader.Options{}))
	}
}

// TestMasksOfStacksThatLieElsewhere: a catalog tells at opening that a mask lies elsewhere than the first raster of a
// stack, and only then: the second raster of the stack may lie on a grid of its own.
func TestMasksOfStacksThatLieElsewhere(t *testing.T) {
	for name, c := range map[string]struct {
		shift float64
		grid  spec.Grid
		kind  fault.Kind
	}{"on it": {}, "shifted": {shift: 320, kind: fault.Misplaced}, "on a finer grid": {grid: 5}} {
		dir := t.TempDir()
		writePlaced(t, filepath.Join(dir, "a", "0.tif"), 32630, 500000, 4.6e6, 10)
		writePlaced(t, filepath.Join(dir, "b", "0.tif"), 32630, 500000+160, 4.6e6, 20)
		writePlaced(t, filepath.Join(dir, "masks", "0.tif"), 32630, 500000+c.shift, 4.6e6, 10)
		var b bytes.Buffer
		of := []catalog.Source{{Field: "a", Pattern: "a/{id}.tif"}, {Field: "b", Pattern: "b/{id}.tif"},
			{Field: "mask", Pattern: "masks/{id}.tif"}}
		if _, err := build.Write(t.Context(), &b, []string{dir}, build.Options{Base: dir, Fields: of}); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "catalog.parquet")
		testfile.Write(t, path, b.Bytes())
		s := loader.Spec{Source: path, BatchSize: 1, Fields: []loader.Field{
			{Name: "image", Columns: []string{"a", "b"}, Grid: c.grid}, {Name: "mask"}}}
		e, err := loader.Open(t.Context(), s, loader.Options{})
		if fault.KindOf(err) != c.kind || err != nil && !strings.Contains(err.Error(), "masks/0.tif") {
			t.Errorf("%s: opening says %v, want kind %v", name, err, c.kind)
		}
		if err == nil {
			e.Close()
		}
	}
}

// TestMasksWithoutAPlace: that nothing can be compared is said once, for the fields that go by the ground.
func TestMasksWithoutAPlace(t *testing.T) {
	const image, mask, other = "images/{id}.tif", "masks/{id}.tif", "others/{id}.tif"
	dir := t.TempDir()
	writePlaced(t, filepath.Join(dir, "images", "0.tif"), 32630, 500000, 4.6e6, 10)
	writePlaced(t, filepath.Join(dir, "masks", "0.tif"), 0, 0, 0, 0)
	writePlaced(t, filepath.Join(dir, "others", "0.tif"), 0, 0, 0, 0)
	for name, c := range map[string]struct {
		first, second, ground string
		times                 int
	}{
		"the mask":    {first: image, second: mask, times: 1},
		"the image":   {first: mask, second: image, times: 1},
		"both":        {first: mask, second: other, times: 1},
		"none":        {first: image, second: image},
		"one file":    {first: mask, second: mask},
		"not to mind": {first: image, second: mask, ground: spec.IgnoreGround},
	} {
		var log bytes.Buffer
		s := loader.Spec{Source: dir, BatchSize: 1, Fields: []loader.Field{{Name: "first", Pattern: c.first},
			{Name: "second", Pattern: c.second, Ground: c.ground}}}
		first(t, mustOpen(t, s, loader.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}))
		if n := strings.Count(log.String(), "without a place"); n != c.times {
			t.Errorf("%s: said %d times, want %d: %s", name, n, c.times, &log)
		}
	}
}

func countValid(b *batch.Batch) (n int) {
	for _, v := range b.Valid {
		if v {
			n++
		}
	}
	return n
}

// TestStepsThatLieElsewhere: of three sequences of two steps, one has a step that is shifted by 3 pixels. It is a bad
// sample, of which the policy "fill" keeps the other step, unless the field ignores the ground.
func TestStepsThatLieElsewhere(t *testing.T) {
	dir := t.TempDir()
	table := "site,date,path\n"
	for site := range 3 {
		for date := range 2 {
			name, x := fmt.Sprintf("%d-%d.tif", site, date), 5e5+float64(site)*640
			if site == 1 && date == 1 {
				x += 30
			}
			writePlaced(t, filepath.Join(dir, name), 32630, x, 4.6e6, 10)
			table += fmt.Sprintf("%d,%d,%s\n", site, date, name)
		}
	}
	path := filepath.Join(dir, "table.csv")
	testfile.Write(t, path, []byte(table))
	fields := []loader.Field{{Name: "image", Column: "path", DType: "uint8"}}
	s := loader.Spec{Source: path, Fields: fields, BatchSize: 3,
		Sampler: loader.Sampler{Kind: spec.RandomWindow, Height: 32, Width: 32}}
	s.Time = &spec.Time{Key: "site", Order: "date", Length: 2}
	for policy, valid := range map[string]int{spec.BadSkip: 2, spec.BadFill: 3, spec.BadReplace: 3} {
		s.BadSamples = policy
		b := first(t, mustOpen(t, s, loader.Options{}))
		if n := countValid(b); n != valid || len(b.Bad) != 1 || fault.KindOf(b.Bad[0].Err) != fault.Misplaced {
			t.Errorf("%s: %d valid rows, want %d, and bad samples %v", policy, n, valid, b.Bad)
		}
	}
	s.Fields[0].Ground, s.BadSamples = spec.IgnoreGround, spec.BadError
	first(t, mustOpen(t, s, loader.Options{}))
}
