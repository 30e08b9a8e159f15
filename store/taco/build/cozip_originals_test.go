package build_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/taco/build"
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
// CHASKI_ORACLE_PYTHON_TACO is a Python with taco-eo, CHASKI_ORACLE_SEED another seed.
func TestTACO3OfOthers(t *testing.T) {
	python := os.Getenv("CHASKI_ORACLE_PYTHON_TACO")
	if python == "" {
		t.Skip("CHASKI_ORACLE_PYTHON_TACO names no Python with taco-eo")
	}
	seed := os.Getenv("CHASKI_ORACLE_SEED")
	if seed == "" {
		seed = "0"
	}
	t.Log("CHASKI_ORACLE_SEED=" + seed)
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
	var errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), python, append([]string{"../testdata/taco3.py"}, args...)...)
	cmd.Env = append(os.Environ(), "TZ=UTC")
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	for line := range bytes.Lines(out) {
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		var one told
		if err := d.Decode(&one); err != nil {
			t.Fatal(err)
		}
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
			dec := json.NewDecoder(bytes.NewReader(v.AppendJSON(nil, i)))
			dec.UseNumber()
			var got any
			if err := dec.Decode(&got); err != nil {
				t.Fatal(err)
			}
			if !equalJSON(got, w) {
				t.Errorf("%s row %d %q (%v): got %v, want %v", level, i, name, v.Type(), got, w)
			}
		}
	}
}

// equalJSON compares values, numbers by what they are: 1.0 is 1, and decimals are text in Python.
func equalJSON(a, b any) bool {
	switch x := a.(type) {
	case json.Number:
		y, ok := b.(json.Number)
		if !ok {
			text, _ := b.(string)
			return text == x.String()
		}
		f, err := x.Float64()
		g, err2 := y.Float64()
		return x == y || err == nil && err2 == nil && f == g && math.Abs(f) < 1<<53
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, equalJSON)
	case map[string]any:
		y, ok := b.(map[string]any)
		for name, v := range x {
			w, there := y[name]
			ok = ok && there && equalJSON(v, w)
		}
		return ok && len(x) == len(y)
	}
	return a == b
}
