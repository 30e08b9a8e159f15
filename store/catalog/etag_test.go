package catalog_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/catalog/build"
	"github.com/chaski-eo/chaski/store/catalog/internal/rowio"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
)

// store opens "store:" URIs as files of a directory, and gives some of them ETags.
type store struct {
	openers.Files
	dir  string
	tags map[string]string
}

type tagged struct {
	source.Reader
	tag string
}

func (t tagged) ETag() string { return t.tag }

func (s *store) Open(ctx context.Context, uri string) (source.Reader, error) {
	name := strings.TrimPrefix(uri, "store://")
	if name == uri {
		return s.Files.Open(ctx, uri)
	}
	r, err := s.Files.Open(ctx, filepath.Join(s.dir, name))
	return tagged{r, s.tags[name]}, err
}

// TestETagsOfObjects finds the ETag of an object in its row. Rows of local files, also by file URI, and of objects
// without an ETag have null.
func TestETagsOfObjects(t *testing.T) {
	dir := folder.Of(t, "a.tif", "b.tif", "c.tif", "d.tif")
	s := &store{dir: dir, tags: map[string]string{"a.tif": `"33a64df5"`}}
	defer s.Close()
	out := filepath.Join(dir, "all.parquet")
	f, err := os.Create(out)
	if err != nil {
		t.Fatal(err)
	}
	paths := []string{"store://a.tif", "store://b.tif", "file://" + filepath.Join(dir, "c.tif"),
		filepath.Join(dir, "d.tif")}
	if _, err := build.Write(t.Context(), f, paths, build.Options{Base: dir, Opener: s}); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	rows, err := parquet.ReadFile[rowio.Row](out)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, r := range rows {
		tag := "null"
		if r.ETag != nil {
			tag = *r.ETag
		}
		got[r.URI] = tag
	}
	want := map[string]string{"store://a.tif": `"33a64df5"`, "store://b.tif": "null", "c.tif": "null", "d.tif": "null"}
	for uri, tag := range want {
		if got[uri] != tag {
			t.Errorf("%s has %s, want %s", uri, got[uri], tag)
		}
	}
	if len(got) != len(want) {
		t.Errorf("rows %v", got)
	}
}
