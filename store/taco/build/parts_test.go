package build_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/taco/build"
	"github.com/chaski-eo/chaski/tables"
)

// tiles returns samples first to last with two files each, of number bytes, and a column at both levels.
func tiles(first, last int) *build.Taco {
	set := &build.Taco{Collection: collection(), Samples: &build.Tortilla{}}
	text := func(s ...string) *tables.Table {
		return tables.FromVectors([]string{"name"}, []*tables.Vector{tables.NewStrings(s, nil)})
	}
	var names, below []string
	for i := first; i <= last; i++ {
		set.Samples.Samples = append(set.Samples.Samples, build.Sample{ID: fmt.Sprint("s", 100-i),
			Children: &build.Tortilla{Samples: []build.Sample{{ID: "x", Bytes: make([]byte, 10*i)},
				{ID: "a", Bytes: []byte(fmt.Sprint(i))}}}})
		names, below = append(names, fmt.Sprint("name of ", i)), append(below, "of x", fmt.Sprint("of a of ", i))
	}
	set.Columns = columns(text(names...), text(below...))
	return set
}

// withoutZIP returns files by their path alone.
func withoutZIP(files map[string]string) map[string]string {
	out := map[string]string{}
	for name, b := range files {
		_, path, _ := strings.Cut(name, " ")
		out[path] = b
	}
	return out
}

// TestParts: a container in parts has the files of the whole one, in ZIPs of at most as many
// bytes as asked for.
func TestParts(t *testing.T) {
	dir := t.TempDir()
	whole := filepath.Join(dir, "whole.tacozip")
	if _, err := build.Create(t.Context(), tiles(1, 9), whole, build.Options{}); err != nil {
		t.Fatal(err)
	}
	want := withoutZIP(filesOf(t, whole))
	for name, c := range map[string]struct {
		o     build.Options
		parts int
	}{
		"one": {build.Options{PartBytes: 1000}, 1},
		// Samples have 11, 21, … 91 bytes: 11+21+31, 41+51, 61, 71, 81, 91.
		"size":  {build.Options{PartBytes: 100}, 6},
		"small": {build.Options{PartBytes: 1}, 9},
	} {
		path := filepath.Join(dir, name)
		r, err := build.Create(t.Context(), tiles(1, 9), path, c.o)
		if err != nil || r.Samples != 9 || r.Files != 18 {
			t.Fatalf("%s: %+v %v", name, r, err)
		}
		files := filesOf(t, filepath.Join(path, ".tacocat"))
		if got := withoutZIP(files); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: files %v, want %v", name, got, want)
		}
		sizes := map[string]int64{}
		for file, b := range files {
			zip, _, _ := strings.Cut(file, " ")
			sizes[zip] += int64(len(b))
		}
		left, err := os.ReadDir(path)
		if err != nil || len(sizes) != c.parts || len(left) != c.parts+1 {
			t.Errorf("%s: ZIPs %v and files %v, want %d: %v", name, sizes, left, c.parts, err)
		}
		if _, err := build.Create(t.Context(), tiles(1, 9), path, c.o); err == nil ||
			!strings.Contains(err.Error(), "exists") {
			t.Errorf("%s: written over another: %v", name, err)
		}
	}
}

// TestAppend: samples that are appended are in every index of the folder, beside those that were there. What does not
// fit is refused and leaves the folder as it was. What a killed run left is removed.
func TestAppend(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "parts")
	if _, err := build.Create(t.Context(), tiles(1, 3), dir, build.Options{PartBytes: 40}); err != nil {
		t.Fatal(err)
	}
	zips := []string{filepath.Join(dir, "part0000.tacozip"), filepath.Join(dir, "part0001.tacozip")}
	for _, name := range indexNames[1:] {
		if _, err := build.Consolidate(t.Context(), zips, filepath.Join(dir, name), build.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	add := func(set *build.Taco) error {
		_, err := build.Append(t.Context(), dir, build.Options{}, func(path string, c build.Collection) (*build.Result,
			error) {
			set.Collection = c
			return build.Create(t.Context(), set, path, build.Options{})
		})
		return err
	}
	if err := add(tiles(4, 5)); err != nil {
		t.Fatal(err)
	}
	// A run that was killed before the index had its ZIP leaves the ZIP and the journal.
	for name, b := range map[string]string{"part0003.tacozip": "half", ".chaski-append": "part0003.tacozip"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(b), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := add(tiles(6, 6)); err != nil {
		t.Fatal(err)
	}
	whole := filepath.Join(t.TempDir(), "whole.tacozip")
	if _, err := build.Create(t.Context(), tiles(1, 6), whole, build.Options{}); err != nil {
		t.Fatal(err)
	}
	want := withoutZIP(filesOf(t, whole))
	check := func() {
		t.Helper()
		for _, name := range indexNames {
			files := filesOf(t, filepath.Join(dir, name))
			if got := withoutZIP(files); !maps.Equal(got, want) {
				t.Errorf("%s: files %v, want %v", name, got, want)
			}
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 4+3 {
			t.Errorf("left behind: %v %v", left, err)
		}
	}
	check()
	flat := tiles(7, 7)
	flat.Samples, flat.Columns = flat.Samples.Samples[0].Children, nil
	named := tiles(7, 7)
	named.Columns = nil
	failing := tiles(7, 7)
	failing.Samples.Samples[0].Children.Samples[0] = build.Sample{ID: "x", File: filepath.Join(dir, "none")}
	for says, set := range map[string]*build.Taco{"one of this id": tiles(2, 2), "levels": flat, "column": named,
		"none": failing} {
		if err := add(set); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
		check()
	}
	_, err := build.Append(t.Context(), t.TempDir(), build.Options{}, nil)
	if err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder without an index: %v", err)
	}
}

// TestAppendKeepsEdits: the description that Edit changed in an index is there after an append, in each index. Columns
// of an index are refused: it has those of its ZIPs.
func TestAppendKeepsEdits(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "parts")
	if _, err := build.Create(t.Context(), tiles(1, 3), dir, build.Options{PartBytes: 40}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, indexNames[1])
	if _, err := build.Consolidate(t.Context(), []string{dir}, file, build.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Join(dir, indexNames[0])} {
		err := build.Edit(t.Context(), path, build.Changes{Drop: []string{"name"}}, build.Options{})
		if err == nil || !strings.Contains(err.Error(), "edit these") {
			t.Errorf("columns of an index: %v", err)
		}
		edit := build.Changes{Describe: func(c *build.Collection) error {
			c.Title, c.Keywords = "Edited", append(c.Keywords, "new")
			return nil
		}}
		if err := build.Edit(t.Context(), path, edit, build.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := build.Append(t.Context(), dir, build.Options{}, func(path string, c build.Collection) (*build.Result,
		error) {
		set := tiles(4, 4)
		set.Collection = c
		return build.Create(t.Context(), set, path, build.Options{})
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range indexNames[:2] {
		d, err := taco.Open(t.Context(), &source.Files{}, []string{filepath.Join(dir, name)}, taco.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		c, err := build.CollectionOf(d)
		if n := len(c.Keywords); err != nil || c.Title != "Edited" || n < 2 || c.Keywords[n-2] != "new" {
			t.Errorf("%s: %+v %v", name, c, err)
		}
		if _, err := d.Verify(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFoldersByLinks: a folder of parts may be named by a link, and by a path that goes up from one, for an append and
// for an index. The file system says where such a path leads.
func TestFoldersByLinks(t *testing.T) {
	dir := t.TempDir()
	parts := filepath.Join(dir, "real", "parts")
	for _, name := range []string{"real/below", "parts"} { // "parts" is where the text of link/../parts leads
		if err := os.MkdirAll(filepath.Join(dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := build.Create(t.Context(), tiles(1, 2), parts, build.Options{PartBytes: 30}); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"alias": parts, "link": filepath.Join(dir, "real", "below")} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for i, folder := range []string{dir + "/alias", dir + "/link/../parts"} {
		set := tiles(3+i, 3+i)
		put := func(path string, c build.Collection) (*build.Result, error) {
			set.Collection = c
			return build.Create(t.Context(), set, path, build.Options{})
		}
		if _, err := build.Append(t.Context(), folder, build.Options{}, put); err != nil {
			t.Errorf("%s: %v", folder, err)
		}
		for _, name := range indexNames {
			_, err := build.Consolidate(t.Context(), []string{folder}, folder+"/"+name, build.Options{})
			if err != nil {
				t.Errorf("%s/%s: %v", folder, name, err)
			}
			if n := len(filesOf(t, filepath.Join(parts, name))); n != 2*(3+i) {
				t.Errorf("%s/%s has %d files, want %d", folder, name, n, 2*(3+i))
			}
		}
	}
	if left, err := os.ReadDir(filepath.Join(dir, "parts")); err != nil || len(left) > 0 {
		t.Errorf("written where the text of a path leads: %v %v", left, err)
	}
}

// TestAppendAndIndexExclude: while samples are appended, an index of the folder is refused. Otherwise it would replace
// the one that has the new ZIP. A journal that is a pipe is refused too, as reading it would wait.
func TestAppendAndIndexExclude(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "parts")
	if _, err := build.Create(t.Context(), tiles(1, 2), dir, build.Options{PartBytes: 30}); err != nil {
		t.Fatal(err)
	}
	index := func() error {
		_, err := build.Consolidate(t.Context(), []string{dir}, filepath.Join(dir, ".tacocat"), build.Options{})
		return err
	}
	add := func(set *build.Taco) error {
		_, err := build.Append(t.Context(), dir, build.Options{}, func(path string, c build.Collection) (*build.Result,
			error) {
			if err := index(); err == nil || !strings.Contains(err.Error(), "another run") {
				t.Errorf("an index meanwhile: %v", err)
			}
			set.Collection = c
			return build.Create(t.Context(), set, path, build.Options{})
		})
		return err
	}
	if err := errors.Join(add(tiles(3, 3)), index()); err != nil {
		t.Fatal(err)
	}
	if n := len(filesOf(t, filepath.Join(dir, ".tacocat"))); n != 6 {
		t.Errorf("%d files, want 6", n)
	}
	if err := os.Mkdir(filepath.Join(dir, ".chaski-append"), 0o777); err != nil { // as a pipe, it is not a file
		t.Fatal(err)
	}
	if err := add(tiles(4, 4)); err == nil || !strings.Contains(err.Error(), "is not a file of a run") {
		t.Errorf("a journal that is no file: %v", err)
	}
}
