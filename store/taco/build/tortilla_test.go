package build_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/taco/build"
	"github.com/chaski-eo/chaski/tables"
)

// randomTortilla writes a random dataset without padding as a Tortilla.
func randomTortilla(t *testing.T, path string, seed int) *maker {
	t.Helper()
	m := &maker{dir: filepath.Dir(path), leaves: map[string]string{}}
	set := rapid.Custom(func(r *rapid.T) *build.Taco {
		m.r, m.rows, m.names = r, nil, nil
		clear(m.leaves)
		return m.taco()
	}).Example(seed)
	if _, err := build.Create(t.Context(), set, path, build.Options{}); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestTortillas: a Tortilla has the files and values that were put into it, and its header and the headers of folders
// are those of the Tortilla specification 0.5.0: magic number, place of the table, one part, and zeros.
func TestTortillas(t *testing.T) {
	for i := range 30 {
		path := filepath.Join(t.TempDir(), "a.tortilla")
		m := randomTortilla(t, path, i)
		if got := withoutZIP(filesOf(t, path)); !reflect.DeepEqual(got, m.leaves) {
			t.Fatalf("%d: files %q, want %q", i, got, m.leaves)
		}
		all, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		d, err := taco.Open(t.Context(), &source.Files{}, []string{path}, taco.Options{})
		if err != nil {
			t.Fatal(err)
		}
		blobs := [][]byte{all}
		for k := range d.Levels() {
			table, err := d.Level(t.Context(), k)
			if err != nil {
				t.Fatal(err)
			}
			for row := range table.Len() {
				e, err := d.EntryAt(t.Context(), k, row)
				if err != nil {
					t.Fatal(err)
				}
				if e.Kind == taco.Folder {
					blobs = append(blobs, all[e.Offset:e.Offset+e.Size])
				}
			}
		}
		for _, b := range blobs {
			off, size := binary.LittleEndian.Uint64(b[2:]), binary.LittleEndian.Uint64(b[10:])
			footer := b[off : off+size]
			if string(b[:2]) != "#y" || binary.LittleEndian.Uint64(b[18:]) != 1 || off+size != uint64(len(b)) ||
				strings.Trim(string(b[26:200]), "\x00") != "" || string(footer[:4]) != "PAR1" ||
				string(footer[len(footer)-4:]) != "PAR1" {
				t.Fatalf("%d: a header of %q for %d bytes", i, b[:200], len(b))
			}
		}
		for k, rows := range m.rows {
			table, err := d.Level(t.Context(), k)
			if err != nil {
				t.Fatal(err)
			}
			values := 0
			for c, column := range table.Columns() {
				v, err := table.At(t.Context(), c)
				if err != nil {
					t.Fatal(err)
				}
				for row := range table.Len() {
					e, err := d.Entry(t.Context(), k, row)
					if err != nil {
						t.Fatal(err)
					}
					want, ok := rows[e.Path+" "+column.Name]
					if got := string(v.AppendJSON(nil, row)); ok && got != want {
						t.Errorf("%d: %s %q is %s, want %s", i, e.Path, column.Name, got, want)
					} else if ok {
						values++
					}
				}
			}
			if values != len(rows) {
				t.Errorf("%d: %d values of level %d, want %d", i, values, k, len(rows))
			}
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(t.TempDir(), "set")
	_, err := build.Create(t.Context(), tiles(1, 5), dir, build.Options{Form: build.TortillaFile, PartBytes: 63})
	if err != nil {
		t.Fatal(err)
	}
	whole := filepath.Join(t.TempDir(), "whole.tortilla")
	if _, err := build.Create(t.Context(), tiles(1, 5), whole, build.Options{}); err != nil {
		t.Fatal(err)
	}
	files := filesOf(t, filepath.Join(dir, "set.tortilla"))
	if got, want := withoutZIP(files), withoutZIP(filesOf(t, whole)); !reflect.DeepEqual(got, want) {
		t.Errorf("parts have files %q, want %q", got, want)
	}
	for i := range 3 {
		b, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("set.%04d.part.tortilla", i)))
		if err != nil || binary.LittleEndian.Uint64(b[18:]) != 3 {
			t.Errorf("part %d: %v, or it is not of 3", i, err)
		}
	}
}

// TestTheOriginalReaderReadsTortillas: the reader of generation 1 in tacoreader finds in random Tortillas the rows and
// bytes that were put into them. CHASKI_ORACLE_PYTHON_TACO is a Python with it, CHASKI_ORACLE_SEED another seed.
func TestTheOriginalReaderReadsTortillas(t *testing.T) {
	python, seed := original(t)
	count := 120
	if testing.Short() {
		count = 40
	}
	var paths []string
	var made []*maker
	for i := range count {
		path := filepath.Join(t.TempDir(), fmt.Sprint(i, ".tortilla"))
		made, paths = append(made, randomTortilla(t, path, seed*count+i)), append(paths, path)
	}
	lines := readByOriginal(t, python, "testdata/read_tortilla.py", paths)
	for i, line := range lines {
		made[i].compareOld(t, line)
	}
}

// compareOld compares what the reader of generation 1 found with what was put in.
func (m *maker) compareOld(t *testing.T, line []byte) {
	t.Helper()
	var found struct {
		Leaves map[string]string
		Rows   [][3]any
	}
	if err := json.Unmarshal(line, &found); err != nil {
		t.Fatal(err)
	}
	if want := m.hashes(); !reflect.DeepEqual(found.Leaves, want) {
		t.Errorf("leaves %v, want %v", found.Leaves, want)
	}
	values, all := 0, 0
	for _, row := range found.Rows {
		for name := range row[2].(map[string]any) {
			if _, ok := m.rows[int(row[0].(float64))][row[1].(string)+" "+name]; !ok {
				t.Errorf("%v has a column %q", row[1], name)
			}
			values++
		}
	}
	for _, level := range m.rows {
		all += len(level)
	}
	if values != all {
		t.Errorf("%d values, want %d", values, all)
	}
}

// TestColumnsThatATortillaHas: a column of the samples that is called as one of a Tortilla's own does not come twice
// into its tables, which other readers refuse. Its place and id are those of the container.
func TestColumnsThatATortillaHas(t *testing.T) {
	names := []string{"tortilla:id", "tortilla:file_format", "tortilla:offset", "tortilla:length"}
	for _, name := range names {
		set := tiles(1, 3)
		mine := tables.NewStrings([]string{"mine", "mine", "mine"}, nil)
		set.Columns = columns(tables.FromVectors([]string{name}, []*tables.Vector{mine}))
		path := filepath.Join(t.TempDir(), "a.tortilla")
		if _, err := build.Create(t.Context(), set, path, build.Options{}); err != nil {
			continue // refused is as good
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		off, size := binary.LittleEndian.Uint64(b[2:]), binary.LittleEndian.Uint64(b[10:])
		f, err := parquet.OpenFile(bytes.NewReader(b[off:off+size]), int64(size))
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]int{}
		for _, c := range f.Schema().Columns() {
			seen[strings.Join(c, ".")]++
		}
		for _, own := range names {
			if seen[own] != 1 {
				t.Errorf("samples with %s: the table has %s %d times", name, own, seen[own])
			}
		}
	}
}
