package build_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/taco/build"
	"github.com/chaski-eo/chaski/tools/testkit/oracle"
)

// told is what taco-eo says of a container: see store/taco/testdata/taco3.py.
type told struct {
	Path    string
	Issues  []string
	Levels  map[string]map[string][2]any
	Columns []string
	Files   map[string]string
}

// TestTACO3OfOthers promises that random containers of the original writer are read as its reader reads them, and that
// copies of them in each form have the same rows, types and files for that reader, which finds nothing wrong in them.
func TestTACO3OfOthers(t *testing.T) {
	python, seed := oracle.TACO(t, "CHASKI_ORACLE_PYTHON_TACO")
	count := 100
	if testing.Short() {
		count = 30
	}
	dir := t.TempDir()
	wants := tellTACO3(t, python, "write", dir, seed, fmt.Sprint(count))
	if len(wants) < count*9/10 { // what the writer refuses is not there
		t.Fatalf("%d of %d containers", len(wants), count)
	}
	copies, sources := []string{"read"}, []int{}
	for i, want := range wants {
		compareTACO3(t, want)
		path := filepath.Join(dir, fmt.Sprintf("copy%d", i), []string{"a.taco3.zip", "a.taco3", "parts"}[i%3])
		if err := os.Mkdir(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		copyTACO3(t, want.Path, path)
		if i%3 == 2 {
			path = filepath.Join(path, ".tacocat")
		}
		copies, sources = append(copies, path), append(sources, i)
	}
	for i, got := range tellTACO3(t, python, copies...) {
		want := wants[sources[i]]
		for _, told := range []*told{&got, &want} {
			told.Columns = slices.DeleteFunc(told.Columns, func(name string) bool { return name == "source_file" })
		}
		got.Path, want.Path = "", ""
		if !reflect.DeepEqual(got, want) {
			t.Errorf("container %d: the copy has\n%+v\nwant\n%+v", i, got, want)
		}
	}
}

// tellTACO3 runs the script.
func tellTACO3(t *testing.T, python string, args ...string) (all []told) {
	t.Helper()
	lines, _ := oracle.Lines(t, python, "../testdata/taco3.py", args...)
	for _, line := range lines {
		var one told
		oracle.Decode(t, line, &one)
		all = append(all, one)
	}
	return all
}

// copyTACO3 copies a container to a path whose name says its form; "parts" are
// ZIPs of one sample each, with an index.
func copyTACO3(t *testing.T, from, to string) {
	t.Helper()
	d := openWith(t, t.Context(), from)
	defer d.Close()
	c, err := build.CollectionOf(d)
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Base(to) != "parts" {
		if _, err := build.Export(t.Context(), d, nil, *c, to, build.Options{}); err != nil {
			t.Fatalf("%s: %v", from, err)
		}
		return
	}
	visible, err := d.Visible(t.Context(), 0)
	if err == nil {
		err = os.Mkdir(to, 0o777)
	}
	for i, row := range visible {
		if err == nil {
			part := filepath.Join(to, fmt.Sprintf("part%04d.zip", i))
			_, err = build.Export(t.Context(), d, []int{row}, *c, part, build.Options{Form: build.Cozip})
		}
	}
	if err == nil {
		_, err = build.Consolidate(t.Context(), []string{to}, filepath.Join(to, ".tacocat"), build.Options{})
	}
	if err != nil {
		t.Fatalf("%s: %v", from, err)
	}
}

// compareTACO3 compares what chaski reads with what the original reader says.
func compareTACO3(t *testing.T, want told) {
	t.Helper()
	if len(want.Issues) > 0 {
		t.Errorf("%s: its own writer's container has %q", want.Path, want.Issues)
	}
	d := openWith(t, t.Context(), want.Path)
	defer d.Close()
	if _, err := d.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	wide, err := d.SQL(t.Context(), "SELECT * FROM dataset")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range wide.Columns() {
		names = append(names, c.Name)
	}
	if !slices.Equal(names, want.Columns) {
		t.Errorf("%s: columns: got %q, want %q", want.Path, names, want.Columns)
	}
	for level, columns := range want.Levels {
		compareLevel3(t, d, level, columns)
	}
	if len(want.Files) == 0 {
		t.Errorf("%s: no files", want.Path)
	}
}

// compareLevel3 compares the columns of a table.
func compareLevel3(t *testing.T, d *taco.Dataset, level string, columns map[string][2]any) {
	t.Helper()
	tab, err := d.LevelTable(t.Context(), level)
	if err != nil {
		t.Fatal(err)
	}
	for name, column := range columns {
		v, err := tab.Column(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		values := column[1].([]any)
		if v.Len() != len(values) {
			t.Fatalf("%s: %d rows, want %d", level, v.Len(), len(values))
		}
		for i, w := range values {
			var got any
			oracle.Decode(t, v.AppendJSON(nil, i), &got)
			if !oracle.Same(got, w) {
				t.Errorf("%s row %d %q (%v): got %v, want %v", level, i, name, v.Type(), got, w)
			}
		}
	}
}
