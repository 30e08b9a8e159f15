package convert

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/durable"
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

// TestInterruptedAtEveryStep: wherever a run that replaces an array is interrupted, the path has
// the old array or the new one, or the next run finds it. The next run is refused or, with
// overwrite, finishes and leaves nothing else behind.
func TestInterruptedAtEveryStep(t *testing.T) {
	noExchange := func(_, _ string) error { return errors.ErrUnsupported }
	ways := map[string]func(a, b string) error{"exchange": durable.Exchange, "renames": noExchange}
	if a, b := t.TempDir(), t.TempDir(); errors.Is(durable.Exchange(a, b), errors.ErrUnsupported) {
		delete(ways, "exchange")
	}
	for name, exchange := range ways {
		for last := range 4 {
			dir := t.TempDir()
			p := targetOf(filepath.Join(dir, "cube"))
			mark(t, p.dir, "old")
			path, err := p.begin(true)
			if err != nil {
				t.Fatal(err)
			}
			if marked(t, p.dir) != "old" {
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
			p.release() // as the system does when the process ends
			at := marked(t, p.dir)
			between := name == "renames" && last == 1
			switch {
			case between && at == "" && marked(t, p.replaced) == "old":
			case last == 0 && at == "old", last > 0 && !between && at == "new":
			default:
				t.Errorf("%s, %d steps: the array is %q", name, last, at)
			}
			_, err = p.begin(false)
			if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "overwrite") {
				t.Errorf("%s, %d steps: another run: %v", name, last, err)
			}
			if path, err = p.begin(true); err != nil {
				t.Fatalf("%s, %d steps: %v", name, last, err)
			}
			if at := marked(t, p.dir); at == "" {
				t.Errorf("%s, %d steps: there is no array while the next is written", name, last)
			}
			mark(t, path, "newer")
			if err := p.put(path, true); err != nil {
				t.Fatal(err)
			}
			list, err := os.ReadDir(dir)
			if err != nil || len(list) != 1 || marked(t, p.dir) != "newer" {
				t.Errorf("%s, %d steps: %v left, the array is %q", name, last, list, marked(t, p.dir))
			}
		}
	}
}

// TestNewPlaces: a new array appears, an array that is being written is not written a second time,
// and other directories are not replaced.
func TestNewPlaces(t *testing.T) {
	dir := t.TempDir()
	p := targetOf(filepath.Join(dir, "cube") + "/")
	path, err := p.begin(false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := targetOf(p.dir).begin(false); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("a second run at the same time: %v", err)
	}
	mark(t, path, "a")
	if err := p.put(path, false); err != nil || marked(t, p.dir) != "a" {
		t.Errorf("%v, %q", err, marked(t, p.dir))
	}
	other := filepath.Join(dir, "other")
	if err := os.Mkdir(other, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := targetOf(other).begin(true); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("over a folder that is no array: %v", err)
	}
	if list, _ := os.ReadDir(dir); len(list) != 2 {
		t.Errorf("%v", list)
	}
}

// TestTwoRuns: of two runs that replace one array at the same time, the second is refused before it
// removes or changes anything of the first, and files that the first leaves behind do not reach the
// next.
func TestTwoRuns(t *testing.T) {
	dir := t.TempDir()
	first, second := targetOf(filepath.Join(dir, "cube")), targetOf(filepath.Join(dir, "cube"))
	mark(t, first.dir, "old")
	path, err := first.begin(true)
	if err != nil {
		t.Fatal(err)
	}
	mark(t, path, "new")
	if _, err := second.begin(true); fault.KindOf(err) != fault.Unsupported {
		t.Fatalf("a second run at the same time: %v", err)
	}
	second.abandon()
	if marked(t, path) != "new" {
		t.Fatal("the second run removed what the first has written")
	}
	if err := first.put(path, true); err != nil || marked(t, first.dir) != "new" {
		t.Fatalf("%v, %q", err, marked(t, first.dir))
	}
	if path, err = second.begin(true); err != nil {
		t.Fatal(err)
	}
	mark(t, path, "newer")
	first.abandon()
	if err := second.put(path, true); err != nil || marked(t, first.dir) != "newer" {
		t.Errorf("%v, %q", err, marked(t, first.dir))
	}
	if list, _ := os.ReadDir(dir); len(list) != 1 {
		t.Errorf("%v left", list)
	}
}

// TestReplacedByOther: a directory is not replaced if it is no longer an array when the new one is
// ready. If the new array cannot get its name, the old one gets it back.
func TestReplacedByOther(t *testing.T) {
	dir := t.TempDir()
	p := targetOf(filepath.Join(dir, "cube"))
	mark(t, p.dir, "old")
	path, err := p.begin(true)
	if err != nil {
		t.Fatal(err)
	}
	mark(t, path, "new")
	steps := p.steps(path, true, func(_, _ string) error { return errors.ErrUnsupported })
	if err := errors.Join(steps[0](), os.RemoveAll(path)); err != nil {
		t.Fatal(err)
	}
	if err := steps[1](); err == nil || marked(t, p.dir) != "old" {
		t.Errorf("%v, %q", err, marked(t, p.dir))
	}
	mark(t, path, "new")
	note := filepath.Join(p.dir, "note")
	if err := errors.Join(os.RemoveAll(p.dir), os.Mkdir(p.dir, 0o777), os.WriteFile(note, nil, 0o666)); err != nil {
		t.Fatal(err)
	}
	if err := p.put(path, true); fault.KindOf(err) != fault.Unsupported || !exists(note) {
		t.Errorf("a folder that is no array any more: %v", err)
	}
	p.abandon()
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
		p := targetOf(folder)
		path, err := p.begin(true)
		if err != nil {
			t.Fatal(err)
		}
		mark(t, path, name)
		if err := p.put(path, true); err != nil {
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

// TestOnDiskBeforeOldGoes: the old array stays until all of the new one is on disk, and also if the
// new one never gets there.
func TestOnDiskBeforeOldGoes(t *testing.T) {
	real := settle
	defer func() { settle = real }()
	for _, fails := range []bool{true, false} {
		p := targetOf(filepath.Join(t.TempDir(), "cube"))
		mark(t, p.dir, "old")
		path, err := p.begin(true)
		if err != nil {
			t.Fatal(err)
		}
		mark(t, path, "new")
		synced := false
		settle = func(dir string) error {
			if marked(t, p.dir) != "old" || dir != path {
				t.Errorf("%s is synced while the array is %q", dir, marked(t, p.dir))
			}
			synced = true
			if fails {
				return errors.New("disk")
			}
			return real(dir)
		}
		err = p.put(path, true)
		if fails {
			if p.abandon(); err == nil || marked(t, p.dir) != "old" {
				t.Errorf("the array is %q, although the new one is not on the disk: %v", marked(t, p.dir), err)
			}
			continue
		}
		if err != nil || !synced {
			t.Errorf("synced is %v: %v", synced, err)
		}
	}
}
