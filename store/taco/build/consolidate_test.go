package build_test

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/taco/build"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// indexNames are the indexes that Consolidate writes.
var indexNames = []string{".tacocat", "__TACOCAT__", "TACOLLECTION.json"}

// columnNames returns the columns of level 0 at path without those of the container.
func columnNames(t *testing.T, path string) (names []string) {
	t.Helper()
	d, err := taco.Open(t.Context(), &openers.Files{}, []string{path}, taco.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	table, err := d.Level(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range table.Columns() {
		if !strings.HasPrefix(c.Name, "internal:") {
			names = append(names, c.Name)
		}
	}
	return names
}

// filesOf returns the bytes of all samples at path, by the name of their ZIP and their path.
func filesOf(t *testing.T, path string) map[string]string {
	t.Helper()
	d, err := taco.Open(t.Context(), &openers.Files{}, []string{path}, taco.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := d.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for e, err := range d.Leaves(t.Context(), true) {
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(e.URI)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(io.NewSectionReader(f, e.Offset, e.Size))
		if cerr := f.Close(); err != nil || cerr != nil {
			t.Fatal(err, cerr)
		}
		found[filepath.Base(e.URI)+" "+e.Path] = string(b)
	}
	return found
}

// TestIndexesHaveWhatTheirZIPsHave: an index of ZIPs of the original writers, also of those whose tables misplace
// samples, leads to the bytes that the directories of the ZIPs have, by package archive/zip. Columns keep their order.
func TestIndexesHaveWhatTheirZIPsHave(t *testing.T) {
	race.SkipCovered(t)
	for _, zips := range [][]string{{"coast/coast.tacozip"},
		{"containers/taco-v2/spec200/unsorted_three_level.tacozip"},
		{"containers/taco-v2/current/flat_istac.tacozip"}} {
		dir := t.TempDir()
		want := map[string]string{}
		var paths []string
		for i, name := range append(zips, zips...) { // the same twice: rows of level 0 are counted in each
			b := testfile.Read(t, "../../../testdata/"+name)
			file := string(rune('b'-i)) + ".tacozip"
			testfile.Write(t, filepath.Join(dir, file), b)
			paths = append(paths, filepath.Join(dir, file))
			z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range z.File {
				path, ok := strings.CutPrefix(f.Name, "DATA/")
				if !ok || strings.HasSuffix(path, "__meta__") || strings.HasSuffix(path, "/") {
					continue
				}
				r, err := f.Open()
				if err != nil {
					t.Fatal(err)
				}
				content, err := io.ReadAll(r)
				if err != nil {
					t.Fatal(err)
				}
				want[file+" "+path] = string(content)
			}
		}
		for _, name := range indexNames {
			path := filepath.Join(dir, name)
			for range 2 { // the second replaces the first
				if _, err := build.Consolidate(t.Context(), paths, path, build.Options{}); err != nil {
					t.Fatal(err)
				}
			}
			if got := filesOf(t, path); !reflect.DeepEqual(got, want) {
				t.Errorf("%s of %v has %d files, want %d; or other bytes", name, zips, len(got), len(want))
			}
			if got, want := columnNames(t, path), columnNames(t, paths[0]); !reflect.DeepEqual(got, want) {
				t.Errorf("%s of %v has columns %q, want %q", name, zips, got, want)
			}
		}
		left, err := os.ReadDir(dir)
		if err != nil || len(left) != len(paths)+len(indexNames) {
			t.Errorf("%v: left behind: %v %v", zips, left, err)
		}
	}
}

// TestIndexesRefuse: ZIPs that differ, lie elsewhere or are none, and targets that are no index, are refused.
func TestIndexesRefuse(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, column string, v *tables.Vector) {
		set := &build.Taco{Collection: collection(), Columns: columns(tables.FromVectors([]string{column},
			[]*tables.Vector{v})), Samples: &build.Tortilla{Samples: []build.Sample{{ID: "a", Bytes: []byte("x")}}}}
		if name == "in/deep.tacozip" {
			set.Samples = &build.Tortilla{Samples: []build.Sample{{ID: "b", Children: set.Samples}}}
		}
		if _, err := build.Create(t.Context(), set, at(name), build.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, folder := range []string{"in", "in/.tacocat"} {
		if err := os.Mkdir(at(folder), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	text, number := tables.NewStrings([]string{"1"}, nil), tables.NewFloats(tables.Type{Kind: tables.Float64, Bits: 64},
		[]float64{1}, nil)
	write("in/a.tacozip", "x", text)
	write("in/number.tacozip", "x", number)
	write("in/column.tacozip", "y", text)
	write("in/deep.tacozip", "x", text)
	write("out.tacozip", "x", text)
	write("in/folder", "x", text)
	for _, c := range []struct {
		out  string
		zips []string
		says string
	}{
		{"in/TACOLLECTION.json", nil, "of no ZIP"},
		{"in/TACOLLECTION.json", []string{"in/a.tacozip", "in/a.tacozip"}, "named twice"},
		{"in/TACOLLECTION.json", []string{"in/a.tacozip", "in/number.tacozip"}, `column "x" has type`},
		{"in/TACOLLECTION.json", []string{"in/a.tacozip", "in/column.tacozip"}, `a column "y"`},
		{"in/TACOLLECTION.json", []string{"in/a.tacozip", "in/deep.tacozip"}, "levels"},
		{"in/__TACOCAT__", []string{"out.tacozip"}, "does not lie in"},
		{"in/__TACOCAT__", []string{"in/folder"}, "FOLDER"},
		{"in/__TACOCAT__", []string{"in/none.tacozip"}, "none.tacozip"},
		{"in/x.tacozip", []string{"in/a.tacozip"}, "is not an index"},
		{"in/.tacocat", []string{"in/a.tacozip"}, "is not an index"},
	} {
		var zips []string
		for _, zip := range c.zips {
			zips = append(zips, at(zip))
		}
		_, err := build.Consolidate(t.Context(), zips, at(c.out), build.Options{})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s of %q: %v, want %q", c.out, c.zips, err, c.says)
		}
	}
	left, err := os.ReadDir(at("in"))
	if err != nil || len(left) != 6 {
		t.Errorf("left behind: %v %v", left, err)
	}
}
