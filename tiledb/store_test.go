package tiledb

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/source"
)

// page is a web server whose page about a folder was written by hand: links to folders have no slash.
type page struct{ *Files }

const pageHost = "http://host"

func (p page) Open(ctx context.Context, uri string) (source.Reader, error) {
	return p.Files.Open(ctx, strings.TrimPrefix(uri, pageHost))
}

func (page) Names(_ context.Context, folder string) (names []string, err error) {
	all, err := filepath.Glob(filepath.Join(strings.TrimPrefix(folder, pageHost), "*"))
	for _, name := range all {
		names = append(names, filepath.Base(name))
	}
	return append(names, names...), err
}

// TestFragmentsOfLinksWithoutSlash: an array is never without its fragments because of how a page links to them.
func TestFragmentsOfLinksWithoutSlash(t *testing.T) {
	dir := filepath.Join(corpusDir(t), "arrays", "dense_1d_gaps")
	var files Files
	defer files.Close()
	local, err := Open(t.Context(), &files, dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := Open(t.Context(), Over{page{&files}}, pageHost+dir, Options{})
	if err != nil || len(a.Fragments) != len(local.Fragments) || len(a.Fragments) == 0 {
		t.Errorf("%d fragments by links, %d in the folder: %v", len(a.Fragments), len(local.Fragments), err)
	}
}
