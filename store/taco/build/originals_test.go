package build_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/taco/build"
	"github.com/chaski-eo/chaski/tools/testkit/oracle"
)

// TestTheOriginalReaderReadsIt: tacoreader finds in random containers, of both forms and of any nesting, the rows,
// values and bytes that were put into them.
func TestTheOriginalReaderReadsIt(t *testing.T) {
	python, text := oracle.TACO(t, "CHASKI_ORACLE_PYTHON_TACO")
	seed, _ := strconv.Atoi(text)
	const count = 40
	dir := t.TempDir()
	var paths []string
	var made []*maker
	for i := range count {
		inside := filepath.Join(dir, fmt.Sprint("é x", i))
		if err := os.Mkdir(inside, 0o777); err != nil {
			t.Fatal(err)
		}
		m := &maker{dir: inside, leaves: map[string]string{}}
		set := rapid.Custom(func(r *rapid.T) *build.Taco {
			m.r, m.rows, m.names = r, nil, nil
			clear(m.leaves)
			return m.taco()
		}).Example(seed*count + i)
		path := filepath.Join(inside, []string{"out.tacozip", "out"}[i%2])
		if _, err := build.Create(t.Context(), set, path, build.Options{}); err != nil {
			t.Fatal(err)
		}
		paths, made = append(paths, path), append(made, m)
		if i%2 == 0 { // tacoreader knows the folder, but neither the file nor TACOLLECTION.json
			index := filepath.Join(inside, ".tacocat")
			if _, err := build.Consolidate(t.Context(), []string{path}, index, build.Options{}); err != nil {
				t.Fatal(err)
			}
			paths, made = append(paths, index), append(made, m)
		}
	}
	lines, warnings := oracle.Lines(t, python, "testdata/read.py", paths...)
	if len(lines) != len(paths) {
		t.Fatalf("%d lines for %d containers: %s", len(lines), len(paths), warnings)
	}
	for i, line := range lines {
		t.Run(fmt.Sprint(i), func(t *testing.T) { made[i].compareOriginal(t, line) })
	}
}

// hashes returns the SHA-256 of each leaf.
func (m *maker) hashes() map[string]string {
	out := map[string]string{}
	for path, b := range m.leaves {
		out[path] = fmt.Sprintf("%x", sha256.Sum256([]byte(b)))
	}
	return out
}

// compareOriginal compares what tacoreader found with what was put in.
func (m *maker) compareOriginal(t *testing.T, line []byte) {
	var found struct {
		Leaves map[string]string
		Rows   [][3]any
		SQL    []string // ids that a query finds, but not a list, or the other way round
	}
	if err := json.Unmarshal(line, &found); err != nil {
		t.Fatal(err)
	}
	if len(found.SQL) > 0 {
		t.Errorf("a query and a list differ in %q", found.SQL)
	}
	if want := m.hashes(); !reflect.DeepEqual(found.Leaves, want) {
		t.Fatalf("leaves %v, want %v", found.Leaves, want)
	}
	values := 0
	for _, row := range found.Rows {
		level, path := int(row[0].(float64)), row[1].(string)
		for name, got := range row[2].(map[string]any) {
			var want any
			if err := json.Unmarshal([]byte(m.rows[level][path+" "+name]), &want); err != nil {
				t.Fatalf("%s has a column %q: %v", path, name, err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s %q is %v, want %v", path, name, got, want)
			}
			values++
		}
	}
	all := 0
	for _, level := range m.rows {
		all += len(level)
	}
	if values != all {
		t.Errorf("%d values, want %d", values, all)
	}
}

// TestGDALReadsTheRasters: rasters in a ZIP open through /vsisubfile/ with the pixels of the files.
// CHASKI_ORACLE_PYTHON is a Python with rasterio.
func TestGDALReadsTheRasters(t *testing.T) {
	python := os.Getenv("CHASKI_ORACLE_PYTHON")
	if python == "" {
		t.Skip("CHASKI_ORACLE_PYTHON names no Python with rasterio")
	}
	files, err := filepath.Glob("../../../testdata/coast/coast_dir/DATA/*/*/*.tif")
	if err != nil || len(files) < 3 {
		t.Fatalf("%v %v", files, err)
	}
	set := &build.Taco{Collection: collection(), Samples: &build.Tortilla{}}
	for i, name := range files {
		set.Samples.Samples = append(set.Samples.Samples, build.Sample{ID: fmt.Sprint("s", 100-i),
			Children: &build.Tortilla{Samples: []build.Sample{{ID: "image.tif", File: name}}}})
	}
	path := filepath.Join(t.TempDir(), "a.tacozip")
	if _, err := build.Create(t.Context(), set, path, build.Options{}); err != nil {
		t.Fatal(err)
	}
	d, err := taco.Open(t.Context(), &openers.Files{}, []string{path}, taco.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	args := []string{"-c", `
import sys, rasterio
for a, b in zip(sys.argv[1::2], sys.argv[2::2]):
    with rasterio.open(a) as x, rasterio.open(b) as y:
        assert x.driver == "GTiff" and x.profile == y.profile and (x.read() == y.read()).all(), a
print("same", len(sys.argv) // 2)`}
	for i, name := range files {
		e, err := d.Resolve(t.Context(), fmt.Sprint("s", 100-i, "/image.tif"))
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, fmt.Sprintf("/vsisubfile/%d_%d,%s", e.Offset, e.Size, e.URI), name)
	}
	out, err := exec.CommandContext(t.Context(), python, args...).CombinedOutput()
	if err != nil || string(out) != fmt.Sprintln("same", len(files)) {
		t.Fatalf("%v: %s", err, out)
	}
}
