package recipe_test

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/source"
)

// counting counts the reads of files.
type counting struct {
	source.Opener
	reads *atomic.Int64
}

func (c counting) Open(ctx context.Context, uri string) (source.Reader, error) {
	r, err := c.Opener.Open(ctx, uri)
	return countingReader{r, c.reads}, err
}

type countingReader struct {
	source.Reader
	reads *atomic.Int64
}

func (c countingReader) ReadAt(ctx context.Context, p []byte, off int64) error {
	c.reads.Add(1)
	return c.Reader.ReadAt(ctx, p, off)
}

// run is what a run of the loader over a container has.
type run struct {
	reads  int64 // of its files, after it was opened
	pixels [][]byte
	places [][]float64
}

func load(t *testing.T, path string, fields ...string) (r run) {
	t.Helper()
	s := spec.Spec{Source: path, BatchSize: 1, Geo: true}
	for _, name := range fields {
		s.Fields = append(s.Fields, spec.Field{Name: name, Kind: spec.RasterField})
	}
	var reads atomic.Int64
	files := &source.Files{}
	defer files.Close()
	e, err := loader.Open(t.Context(), s.WithDefaults(), loader.Options{Opener: counting{files, &reads}, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	opened := reads.Load()
	for i := range e.Len() {
		b, err := e.Start(t.Context(), shuffle.StepTicket(0, i, 1, 0, 1), false).Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range fields {
			r.pixels = append(r.pixels, bytes.Clone(b.Tensor(name).Data))
		}
		for _, name := range []string{"geo.lonlat", "geo.transform"} {
			r.places = append(r.places, b.Tensor(name).Float64())
		}
		b.Release()
	}
	r.reads = reads.Load() - opened
	return r
}

// TestIndexesSaveReads: a run over chips with indexes reads each once less, and has the same pixels and places.
func TestIndexesSaveReads(t *testing.T) {
	dir := scenes(t, 2)
	text := strings.Replace(pairs, "size: 40, stride: 30", "size: 50", 1)
	with, res, err := create(t, dir, text, 2)
	if err != nil {
		t.Fatal(err)
	}
	without, _, err := create(t, dir, text+"index: false\n", 2)
	if err != nil {
		t.Fatal(err)
	}
	one, other := load(t, with, "image", "mask"), load(t, without, "image", "mask")
	if want := other.reads - int64(res.Files); one.reads > want || one.reads < int64(res.Files) {
		t.Errorf("%d reads with indexes and %d without: each of %d files has a header", one.reads, other.reads,
			res.Files)
	}
	if len(one.pixels) != 16 || len(one.places) != len(other.places) {
		t.Fatalf("%d rasters, %d and %d places", len(one.pixels), len(one.places), len(other.places))
	}
	for i := range one.pixels {
		if !bytes.Equal(one.pixels[i], other.pixels[i]) {
			t.Errorf("raster %d: other pixels", i)
		}
	}
	for i := range one.places {
		for k := range one.places[i] {
			// A place without a value is NaN, which is not itself: the scenes have places.
			if one.places[i][k] != other.places[i][k] {
				t.Errorf("sample %d: place %v, and %v by the header", i/2, one.places[i], other.places[i])
				break
			}
		}
	}
}

// TestIndexesKeepThePlace: pairs that do not lie together are found by the columns, as by the headers.
func TestIndexesKeepThePlace(t *testing.T) {
	dir := scenes(t, 2)
	scene(t, filepath.Join(dir, "msk", "s1.tif"), 0, 1, side/2, 20) // at the place of another scene
	text := strings.Replace(pairs, "msk/{id}.tif\"", "msk/{id}.tif\", ground: ignore", 1)
	for _, more := range []string{"", "index: false\n"} {
		out, _, err := create(t, dir, text+more, 2)
		if err != nil {
			t.Fatal(err)
		}
		again := "source: " + out + "\nfields: [{name: image}, {name: mask}]\nquality: {pairs: drop}\n"
		_, res, err := create(t, "", again, 2)
		if err != nil || res.Misplaced != 9 || res.Samples != 9 {
			t.Errorf("%q: %+v %v", more, res, err)
		}
	}
}
