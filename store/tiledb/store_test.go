package tiledb

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// Store is a store of the files of arrays.
type Store = source.Namer

// Files is the Store of local files.
type Files struct{ openers.Files }

// Names implements Store.
func (f *Files) Names(ctx context.Context, uri string) ([]string, error) {
	return openers.Names(ctx, &f.Files, uri)
}

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
	a, err := Open(t.Context(), page{&files}, pageHost+dir, Options{})
	if err != nil || len(a.Fragments) != len(local.Fragments) || len(a.Fragments) == 0 {
		t.Errorf("%d fragments by links, %d in the folder: %v", len(a.Fragments), len(local.Fragments), err)
	}
}

// TestLinksOfFragments: fragments may lie elsewhere, behind links. Where a link leads nowhere, or
// to itself, the array is not all there.
func TestLinksOfFragments(t *testing.T) {
	a, _ := several(t)
	path, want := a.uri, everything(t, a)
	moved, away := a.Fragments[1].path(), filepath.Join(t.TempDir(), "away")
	if err := os.Rename(moved, away); err != nil {
		t.Fatal(err)
	}
	for target, fine := range map[string]bool{away: true, away + "s": false, moved: false} {
		if err := os.Symlink(target, moved); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target+"none", filepath.Join(path, "other")); err != nil { // is no fragment
			t.Fatal(err)
		}
		now, err := Open(t.Context(), localFiles(t), path, Options{})
		switch {
		case !fine && (fault.KindOf(err) != fault.Corrupt || !strings.Contains(err.Error(), moved)):
			t.Errorf("a link to %s: %v", target, err)
		case fine && err != nil:
			t.Error(err)
		case fine && !slices.EqualFunc(everything(t, now), want, sameValues):
			t.Error("the array behind a link is another one")
		}
		if err := errors.Join(os.Remove(moved), os.Remove(filepath.Join(path, "other"))); err != nil {
			t.Fatal(err)
		}
	}
}

// answers is a web server that sends the same bytes for every name below a path, and keeps the names.
type answers struct {
	b    []byte
	uris []string
}

func (a *answers) Open(_ context.Context, uri string) (source.Reader, error) {
	a.uris = append(a.uris, uri)
	return &corpus.Mem{B: a.b}, nil
}

func parsed(t *testing.T, uri string) source.Path {
	t.Helper()
	p, err := source.Parse(uri)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPagesAreNoArrays promises that a page that a server sends for every name is no array, and that the query of a URI
// is not taken for a path.
func TestPagesAreNoArrays(t *testing.T) {
	page := &answers{b: []byte("<!DOCTYPE html><html></html>")}
	if is, err := Is(t.Context(), page, parsed(t, pageHost+"/x.tif")); is || err != nil || len(page.uris) == 0 {
		t.Errorf("a page is an array: asked for %q, %v", page.uris, err)
	}
	page.uris = nil
	is, err := Is(t.Context(), page, parsed(t, pageHost+"/x.tif?sig=A"))
	if is || err != nil || len(page.uris) != 0 {
		t.Errorf("a URI with a query: asked for %q", page.uris)
	}
	schema := testfile.Read(t, filepath.Join(corpusDir(t), "arrays", "dense_1d_gaps", schemaName))
	array := &answers{b: schema}
	if is, err := Is(t.Context(), array, parsed(t, pageHost+"/array")); !is || err != nil {
		t.Errorf("an array is none: asked for %q, %v", array.uris, err)
	}
}
