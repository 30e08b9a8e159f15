package catalog_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/format/chunk/blob"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/catalog/build"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
)

// TestCatalogsOfOldVersions promises that a catalog written by an earlier version holds the same rasters, with the
// same chunk indexes, as one written today of the same files. Today's may hold files that were refused before, and it
// knows which bands are alpha.
func TestCatalogsOfOldVersions(t *testing.T) {
	const old = "testdata/v1/catalog.parquet"
	skip := func(string, error) {}
	was := folder.Open(t, old, catalog.Options{})
	fresh := filepath.Join(t.TempDir(), "catalog.parquet")
	folder.Index(t, fresh, build.Options{Absolute: true, Skipped: skip}, "../../testdata/masks",
		"../../testdata/raster/tog")
	is := folder.Open(t, fresh, catalog.Options{})
	if was.Len() > is.Len() || was.Len() < 10 {
		t.Fatalf("%d rows, now %d", was.Len(), is.Len())
	}
	at := int64(0)
	for row := range was.Len() {
		a, err := was.Asset(t.Context(), 0, row)
		if err != nil {
			t.Fatal(err)
		}
		b, err := is.Asset(t.Context(), 0, at)
		for ; err == nil && filepath.Base(a.URI) != filepath.Base(b.URI); b, err = is.Asset(t.Context(), 0, at) {
			if at++; at == is.Len() {
				t.Fatalf("row %d: %s is missing", row, a.URI)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		at++
		now := *b.Index
		now.Alpha = false
		if filepath.Base(a.URI) != filepath.Base(b.URI) || a.Size != b.Size ||
			!bytes.Equal(blob.Append(nil, a.Index), blob.Append(nil, &now)) {
			t.Errorf("row %d: %s and %s differ", row, a.URI, b.URI)
		}
	}
}
