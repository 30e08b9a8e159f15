package convert

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/tiledb"
)

// mark makes an array that tests recognise by the name of its attribute.
func mark(t *testing.T, path, name string) {
	t.Helper()
	s := &tiledb.Schema{
		Dense: true, Capacity: 1, DimType: tiledb.Int32,
		Coords: tiledb.DefaultFilters(), Offsets: tiledb.DefaultFilters(),
		Dims: []tiledb.Dim{
			{Name: "x", Domain: tiledb.Interval{Lo: tiledb.Int32.CoordOf(0), Hi: tiledb.Int32.CoordOf(3)}, Extent: 2},
		},
		Attrs: []tiledb.Attr{{Name: name, Type: tiledb.Int8, Values: 1, Pipeline: tiledb.DefaultFilters()}},
	}
	if err := tiledb.Create(path, s, nil); err != nil {
		t.Fatal(err)
	}
}

// marked returns the mark of the array at a path, or "" if there is none.
func marked(t *testing.T, path string) string {
	t.Helper()
	if !tiledb.IsArray(path) {
		return ""
	}
	var files source.Files
	defer files.Close()
	a, err := tiledb.Open(t.Context(), &files, path, tiledb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return a.Schema.Attrs[0].Name
}

// TestNewPlaces: a new array appears, an old one stays until the new one replaces it, and other directories are not
// replaced.
func TestNewPlaces(t *testing.T) {
	dir := t.TempDir()
	cube := filepath.Join(dir, "cube")
	for _, name := range []string{"a", "b"} {
		before := marked(t, cube)
		err := newArray(cube+"/", name == "b", func(path string) error {
			mark(t, path, name)
			if got := marked(t, cube); got != before {
				t.Errorf("the array is %q while the next is written", got)
			}
			return nil
		})
		if err != nil || marked(t, cube) != name {
			t.Errorf("%v, %q", err, marked(t, cube))
		}
	}
	never := func(string) error { t.Error("it was written"); return nil }
	if err := newArray(cube, false, never); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("over an array: %v", err)
	}
	other := filepath.Join(dir, "other")
	if err := os.Mkdir(other, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := newArray(other, true, never); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("over a folder that is no array: %v", err)
	}
	if list, _ := os.ReadDir(dir); len(list) != 2 {
		t.Errorf("%v", list)
	}
}

// TestReplacedByOther: a directory is not replaced if it is no longer an array when the new one is ready.
func TestReplacedByOther(t *testing.T) {
	dir := t.TempDir()
	cube := filepath.Join(dir, "cube")
	mark(t, cube, "old")
	note := filepath.Join(cube, "note")
	err := newArray(cube, true, func(path string) error {
		mark(t, path, "new")
		return errors.Join(os.RemoveAll(cube), os.Mkdir(cube, 0o777), os.WriteFile(note, nil, 0o666))
	})
	if fault.KindOf(err) != fault.Unsupported {
		t.Errorf("a folder that is no array any more: %v", err)
	}
	list, _ := os.ReadDir(dir)
	if _, err := os.Stat(note); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", err, list)
	}
}

// TestLinkToArray: through a link, the array that the link names is replaced in its own place, also
// if it is the working directory.
func TestLinkToArray(t *testing.T) {
	dir := t.TempDir()
	far, link := filepath.Join(dir, "far", "cube"), filepath.Join(dir, "link")
	err := errors.Join(os.Mkdir(filepath.Dir(far), 0o777), os.Symlink(filepath.Join("far", "cube"), link))
	if err != nil {
		t.Fatal(err)
	}
	mark(t, far, "old")
	replace := func(folder, name string) {
		t.Helper()
		err := newArray(folder, true, func(path string) error {
			mark(t, path, name)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if list, _ := os.ReadDir(filepath.Dir(far)); marked(t, far) != name || len(list) != 1 {
			t.Errorf("%s: the array is %q, beside it are %v", folder, marked(t, far), list)
		}
	}
	replace(link, "new")
	if to, err := os.Readlink(link); err != nil || to != filepath.Join("far", "cube") {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	t.Chdir(far)
	replace(".", "newer")
}
