package build_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/store/catalog/build"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestListing: a list has the files in their order, its hash changes with their names and sizes, and parts of any sizes
// make the bytes that Write makes in one go.
func TestListing(t *testing.T) {
	dir := t.TempDir()
	tile := testfile.Read(t, filepath.Join("..", "..", "..", "testdata", "raster", "tog", "tog-1x1.tif"))
	names := []string{"a.tif", "b/c.tif", "b/d.tif", "e.tif", "f.tif"}
	for _, name := range names {
		path := filepath.Join(dir, name)
		testfile.Write(t, path, tile)
	}
	o := build.Options{Base: dir}
	var whole bytes.Buffer
	if n, err := build.Write(t.Context(), &whole, []string{dir}, o); err != nil || n != len(names) {
		t.Fatalf("%d rows, %v", n, err)
	}
	list := func() *build.Listing {
		t.Helper()
		l, err := build.List(t.Context(), []string{dir}, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
		return l
	}
	l := list()
	if l.Len() != len(names) {
		t.Fatalf("%d files", l.Len())
	}
	for size := 1; size <= len(names); size++ {
		var parts []*build.Part
		for first := 0; first < len(names); first += size {
			count := min(size, len(names)-first)
			var b bytes.Buffer
			if skipped, err := l.WritePart(t.Context(), &b, first, count); err != nil || len(skipped) > 0 {
				t.Fatal(skipped, err)
			}
			body := io.NewSectionReader(bytes.NewReader(b.Bytes()), 0, int64(b.Len()))
			parts = append(parts, &build.Part{First: first, Count: count, Body: body})
		}
		var merged bytes.Buffer
		n, err := l.Merge(t.Context(), &merged, func(yield func(*build.Part, error) bool) {
			for _, p := range parts {
				if !yield(p, nil) {
					return
				}
			}
		})
		if err != nil || n != len(names) || !bytes.Equal(merged.Bytes(), whole.Bytes()) {
			t.Errorf("parts of %d: %d rows, %d bytes of %d, %v", size, n, merged.Len(), whole.Len(), err)
		}
	}
	before := l.Hash()
	if same := list().Hash(); same != before {
		t.Error("the same files have another hash")
	}
	testfile.Write(t, filepath.Join(dir, "e.tif"), append(tile, 0))
	larger := list().Hash()
	if err := os.Rename(filepath.Join(dir, "f.tif"), filepath.Join(dir, "g.tif")); err != nil {
		t.Fatal(err)
	}
	if renamed := list().Hash(); larger == before || renamed == larger || renamed == before {
		t.Errorf("hashes %s, %s, %s", before, larger, renamed)
	}
}
