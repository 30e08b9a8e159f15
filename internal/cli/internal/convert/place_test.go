package convert

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tiledb"
)

// mark makes an array that is told from others by the name of its attribute.
func mark(t *testing.T, path, name string) {
	t.Helper()
	s := &tiledb.Schema{Dense: true, Capacity: 1, DimType: tiledb.Int32, Coords: tiledb.DefaultFilters(), Offsets: tiledb.DefaultFilters(),
		Dims:  []tiledb.Dim{{Name: "x", Domain: tiledb.Interval{Lo: tiledb.Int32.CoordOf(0), Hi: tiledb.Int32.CoordOf(3)}, Extent: 2}},
		Attrs: []tiledb.Attr{{Name: name, Type: tiledb.Int8, Values: 1, Pipeline: tiledb.DefaultFilters()}}}
	if err := tiledb.Create(path, s, nil); err != nil {
		t.Fatal(err)
	}
}

// marked returns the mark of the array at a path, "" where there is none.
func marked(t *testing.T, path string) string {
	t.Helper()
	if !tiledb.IsArray(path) {
		return ""
	}
	var files tiledb.Files
	defer files.Close()
	a, err := tiledb.Open(t.Context(), &files, path, tiledb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return a.Schema.Attrs[0].Name
}

// TestBrokenOffAtEveryStep: whichever step of replacing an array is the last one of a run, the array is the old one or the
// new one, or lies where the next run finds it; that run is refused or, with overwrite, goes on and leaves nothing else.
func TestBrokenOffAtEveryStep(t *testing.T) {
	noExchange := func(_, _ string) error { return errors.ErrUnsupported }
	ways := map[string]func(a, b string) error{"exchange": exchange, "renames": noExchange}
	if a, b := t.TempDir(), t.TempDir(); errors.Is(exchange(a, b), errors.ErrUnsupported) {
		delete(ways, "exchange")
	}
	for name, exchange := range ways {
		for last := range 4 {
			dir := t.TempDir()
			p := placeOf(filepath.Join(dir, "cube"))
			mark(t, p.folder, "old")
			path, err := p.begin(true)
			if err != nil {
				t.Fatal(err)
			}
			if marked(t, p.folder) != "old" {
				t.Fatal("the old array is gone before the new one is there")
			}
			mark(t, path, "new")
			steps := p.steps(path, true, exchange)
			if len(steps) != 3 {
				t.Fatal("no longer three steps")
			}
			for _, s := range steps[:last] {
				if err := s(); err != nil {
					t.Fatal(err)
				}
			}
			at := marked(t, p.folder)
			between := name == "renames" && last == 1
			switch {
			case between && at == "" && marked(t, p.replaced) == "old":
			case last == 0 && at == "old", last > 0 && !between && at == "new":
			default:
				t.Errorf("%s, %d steps: the array is %q", name, last, at)
			}
			if _, err := p.begin(false); fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "overwrite") {
				t.Errorf("%s, %d steps: another run: %v", name, last, err)
			}
			if path, err = p.begin(true); err != nil {
				t.Fatalf("%s, %d steps: %v", name, last, err)
			}
			if at := marked(t, p.folder); at == "" {
				t.Errorf("%s, %d steps: there is no array while the next is written", name, last)
			}
			mark(t, path, "newer")
			if err := p.put(path, true); err != nil {
				t.Fatal(err)
			}
			list, err := os.ReadDir(dir)
			if err != nil || len(list) != 1 || marked(t, p.folder) != "newer" {
				t.Errorf("%s, %d steps: %v left, the array is %q", name, last, list, marked(t, p.folder))
			}
		}
	}
}

// TestNewPlaces: a new array appears, one that is being written is not written twice, and no other folder is replaced.
func TestNewPlaces(t *testing.T) {
	dir := t.TempDir()
	p := placeOf(filepath.Join(dir, "cube") + "/")
	path, err := p.begin(false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := placeOf(p.folder).begin(false); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("a second run at the same time: %v", err)
	}
	mark(t, path, "a")
	if err := p.put(path, false); err != nil || marked(t, p.folder) != "a" {
		t.Errorf("%v, %q", err, marked(t, p.folder))
	}
	other := filepath.Join(dir, "other")
	if err := os.Mkdir(other, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := placeOf(other).begin(true); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("over a folder that is no array: %v", err)
	}
	if list, _ := os.ReadDir(dir); len(list) != 2 {
		t.Errorf("%v", list)
	}
}
