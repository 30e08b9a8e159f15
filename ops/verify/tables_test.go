package verify

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/format/chunk/blob"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/encode"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/catalog"
	catalogs "github.com/chaski-eo/chaski/store/catalog/build"
	"github.com/chaski-eo/chaski/store/taco/build"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// chips are two rasters with other headers.
var chips = []string{"../../testdata/raster/tog/tog-constant.tif", "../../testdata/raster/tog/tog-1x1.tif"}

// chipsWith returns containers of the chips, in each form, whose samples have a column. Their description is that of
// both generations.
func chipsWith(t *testing.T, column string, values *tables.Vector) (paths []string) {
	t.Helper()
	dir := t.TempDir()
	about := build.Collection{ID: "chips", DatasetVersion: "1", Description: "Two", Licenses: []string{"MIT"},
		Providers: []map[string]any{{"name": "Ana"}}, Curators: []map[string]any{{"name": "Ana"}},
		Tasks: []string{"other"}}
	top := &build.Tortilla{}
	columns := func(context.Context, []build.Level) ([]*tables.Table, error) {
		return []*tables.Table{tables.FromVectors([]string{column}, []*tables.Vector{values})}, nil
	}
	for i := range values.Len() {
		top.Samples = append(top.Samples, build.Sample{ID: fmt.Sprintf("tile %d", i), File: chips[i%len(chips)]})
	}
	for _, name := range []string{"2", "2.tacozip", "3.taco3", "3.taco3.zip", "1.taco", "0.tortilla"} {
		path := filepath.Join(dir, name)
		set := &build.Taco{Samples: top, Columns: columns, Collection: about}
		if _, err := build.Create(t.Context(), set, path, build.Options{}); err != nil {
			t.Fatal(name, err)
		}
		paths = append(paths, path)
		if strings.HasSuffix(name, "zip") {
			index := filepath.Join(dir, "of"+name, ".tacocat")
			if err := os.MkdirAll(filepath.Dir(index), 0o700); err != nil {
				t.Fatal(err)
			}
			zip := filepath.Join(filepath.Dir(index), strings.TrimPrefix(name, "3.taco"))
			if err := os.Link(path, zip); err != nil {
				t.Fatal(err)
			}
			if _, err := build.Consolidate(t.Context(), []string{zip}, index, build.Options{}); err != nil {
				t.Fatal(name, err)
			}
			paths = append(paths, index)
		}
	}
	return paths
}

// catalogWith returns a catalog of the chips that has a column.
func catalogWith(t *testing.T, column string, values *tables.Vector) string {
	t.Helper()
	var b bytes.Buffer
	if _, err := catalogs.Write(t.Context(), &b, chips, catalogs.Options{Absolute: true}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "catalog.parquet")
	testfile.Write(t, path, b.Bytes())
	r, err := (&openers.Files{}).Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	table, err := tables.Read(t.Context(), r, 0, r.Size(), tables.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b.Reset()
	joined := tables.Join(table, tables.FromVectors([]string{column}, []*tables.Vector{values}))
	if err := encode.Table(t.Context(), &b, joined); err != nil {
		t.Fatal(err)
	}
	testfile.Write(t, path, b.Bytes())
	return path
}

// readable reports whether all columns of a Parquet file can be read.
func readable(t *testing.T, b []byte) bool {
	file := filepath.Join(t.TempDir(), "x.parquet")
	testfile.Write(t, file, b)
	r, err := (&openers.Files{}).Open(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	table, err := tables.Read(t.Context(), r, 0, r.Size(), tables.Options{})
	for i := 0; err == nil && i < len(table.Columns()); i++ {
		_, err = table.At(t.Context(), i)
	}
	return err == nil
}

// TestDamagedTables promises that whatever makes a column of a table unreadable is found, in directories, indexes and
// catalogs, which have no checksums.
func TestDamagedTables(t *testing.T) {
	race.SkipCovered(t)
	rows := make([]string, 300)
	for i := range rows {
		rows[i] = fmt.Sprintf("word %d of many", i*i)
	}
	var files [][2]string // of each a dataset, and a table in it
	for _, path := range chipsWith(t, "my:text", tables.NewStrings(rows, nil)) {
		found, err := filepath.Glob(filepath.Join(path, "*.parquet"))
		more, err2 := filepath.Glob(filepath.Join(path, "METADATA", "*.parquet"))
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		for _, file := range append(found, more...) {
			files = append(files, [2]string{path, file})
		}
	}
	catalog := catalogWith(t, "note", tables.NewStrings(rows[:len(chips)], nil))
	files = append(files, [2]string{catalog, catalog})
	if len(files) < 7 {
		t.Fatalf("%d tables: %q", len(files), files)
	}
	for _, f := range files {
		whole := testfile.Read(t, f[1])
		if n := verified(t.Context(), t, f[0], Options{}); n != 0 {
			t.Fatalf("%s: %d faults before anything is changed", f[0], n)
		}
		found := 0
		for off := 4; off+8 < len(whole); off += max(1, len(whole)/60) {
			b := bytes.Clone(whole)
			for i := range 4 {
				b[off+i] ^= 0xA5
			}
			if readable(t, b) {
				continue
			}
			found++
			testfile.Write(t, f[1], b)
			if verified(t.Context(), t, f[0], Options{}) == 0 {
				t.Errorf("%s: byte %d of %s cannot be read, and has no fault", f[0], off, filepath.Base(f[1]))
			}
		}
		testfile.Write(t, f[1], whole)
		if found == 0 {
			t.Errorf("%s: no change made %s unreadable", f[0], filepath.Base(f[1]))
		}
	}
}

// TestTextIsUTF8 promises that strings of other bytes are found in every form.
func TestTextIsUTF8(t *testing.T) {
	paths := chipsWith(t, "my:text", tables.NewStrings([]string{"café", "caf\xe9"}, nil))
	for _, path := range append(paths, catalogWith(t, "note", tables.NewStrings([]string{"\xff", "a"}, nil))) {
		if verified(t.Context(), t, path, Options{}) == 0 {
			t.Errorf("%s: no fault", path)
		}
	}
}

// TestHeadersOfOtherFiles promises that a row with the header of another file is found in every form.
func TestHeadersOfOtherFiles(t *testing.T) {
	var blobs [][]byte
	for _, path := range chips {
		asset, _, err := catalog.OpenAsset(t.Context(), &openers.Files{}, path, 0)
		if err != nil {
			t.Fatal(err)
		}
		blobs = append(blobs, blob.Append(nil, asset.Index))
	}
	column := func(a, b []byte) *tables.Vector {
		return tables.NewBytes(tables.Type{Kind: tables.Binary}, append(bytes.Clone(a), b...),
			[]uint32{0, uint32(len(a)), uint32(len(a) + len(b))}, nil)
	}
	for want, values := range []*tables.Vector{column(blobs[0], blobs[1]), column(blobs[1], blobs[0])} {
		for _, path := range chipsWith(t, "chaski:index", values) {
			if got := verified(t.Context(), t, path, Options{}); got != int64(want) {
				t.Errorf("%s: got %d faults, want %d", path, got, want)
			}
		}
	}
}

// TestMissingZIPs promises that a catalog that lacks one of its ZIPs is faulty, and that a __TACOCAT__, which is one
// file, can be kept alone.
func TestMissingZIPs(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../testdata/taco3/parts")); err != nil {
		t.Fatal(err)
	}
	three := filepath.Join(dir, ".tacocat")
	two, dir2 := []string{}, t.TempDir()
	for _, name := range []string{"a.tacozip", "b.tacozip"} {
		b, err := os.ReadFile("../../testdata/containers/taco-v2/spec200/concat_a.tacozip")
		if err == nil {
			two = append(two, filepath.Join(dir2, name))
			err = os.WriteFile(filepath.Join(dir2, name), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	indexes := []string{three}
	for _, name := range []string{".tacocat", "__TACOCAT__"} {
		indexes = append(indexes, filepath.Join(dir2, name))
		if _, err := build.Consolidate(t.Context(), two, filepath.Join(dir2, name), build.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(want ...int64) {
		t.Helper()
		for i, path := range indexes {
			if got := verified(t.Context(), t, path, Options{}); got != want[i] {
				t.Errorf("%s: got %d faults, want %d", path, got, want[i])
			}
		}
	}
	check(0, 0, 0)
	for _, zip := range []string{filepath.Join(dir, "p1.zip"), two[1]} {
		if err := os.Remove(zip); err != nil {
			t.Fatal(err)
		}
	}
	check(1, 1, 1)
	for _, zip := range []string{filepath.Join(dir, "p0.zip"), two[0]} {
		if err := os.Remove(zip); err != nil {
			t.Fatal(err)
		}
	}
	check(1, 1, 0)
}
