package build_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/taco/build"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// counter counts how often each file is opened.
type counter struct {
	openers.Files
	mu     sync.Mutex
	opened map[string]int
}

func (c *counter) Open(ctx context.Context, uri string) (source.Reader, error) {
	c.mu.Lock()
	c.opened[filepath.Base(uri)]++
	c.mu.Unlock()
	return c.Files.Open(ctx, uri)
}

// sums inspects files for a column with the sum of their bytes.
func sums(levels []build.Level) build.Inspection {
	sums := make([][]int64, len(levels))
	for k := range levels {
		sums[k] = make([]int64, len(levels[k].Rows))
	}
	return build.Inspection{
		File: func(ctx context.Context, level, row int, r source.Reader) error {
			b := make([]byte, r.Size())
			err := r.ReadAt(ctx, b, 0)
			if bytes.HasPrefix(b, []byte("bad")) {
				err = errors.New("bad file")
			}
			for _, v := range b {
				sums[level][row] += int64(v)
			}
			return err
		},
		Columns: func(context.Context) (out []*tables.Table, err error) {
			for k := range levels {
				out = append(out, tables.FromVectors([]string{"my:sum"},
					[]*tables.Vector{tables.NewInts(integers, sums[k], nil)}))
			}
			return out, nil
		},
	}
}

// inspectable writes files and returns them as samples, beside padding and bytes in memory. One file, of 5 MiB, is too
// large to be held in memory.
func inspectable(t *testing.T) (*build.Taco, map[string]int64) {
	t.Helper()
	dir := t.TempDir()
	s, want := &build.Tortilla{}, map[string]int64{}
	add := func(id string, b []byte, inMemory bool) {
		sample := build.Sample{ID: id, Bytes: b}
		if !inMemory {
			sample = build.Sample{ID: id, File: filepath.Join(dir, id)}
			testfile.Write(t, sample.File, b)
		}
		s.Samples = append(s.Samples, sample)
		for _, v := range b {
			want[id] += int64(v)
		}
	}
	for i := range 25 {
		add(fmt.Sprintf("f%02d", i), bytes.Repeat([]byte{byte(i + 1)}, 1000+i*997%1500), i%7 == 0)
	}
	add("large", bytes.Repeat([]byte{3}, 5<<20), false)
	return &build.Taco{Samples: s, Collection: collection()}, want
}

// TestFilesAreReadOnce: a ZIP and a folder with columns of the bytes of files have the sums of these bytes, open each
// file once, and do not depend on the number of workers.
func TestFilesAreReadOnce(t *testing.T) {
	made, want := inspectable(t)
	var first []byte
	for i, form := range []build.Options{{Form: build.ZIP}, {Form: build.ZIP, Workers: 1},
		{Form: build.ZIP, Workers: 9}, {Form: build.Folder}} {
		opener := &counter{opened: map[string]int{}}
		form.Opener, form.Inspect = opener, sums
		path := filepath.Join(t.TempDir(), "out")
		if _, err := build.Create(t.Context(), made, path, form); err != nil {
			t.Fatal(err)
		}
		for name, n := range opener.opened {
			if n != 1 {
				t.Errorf("%d: %s was opened %d times", i, name, n)
			}
		}
		if form.Form == build.ZIP {
			b := testfile.Read(t, path)
			if first == nil {
				first = b
			} else if !bytes.Equal(first, b) {
				t.Errorf("%d workers write something else", form.Workers)
			}
		}
		checkSums(t, path, &opener.Files, want)
		if err := opener.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// checkSums checks the column of sums.
func checkSums(t *testing.T, path string, o source.Opener, want map[string]int64) {
	t.Helper()
	d, err := taco.Open(t.Context(), o, []string{path}, taco.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	level, err := d.Level(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := level.Column(t.Context(), "id")
	if err != nil {
		t.Fatal(err)
	}
	got, err := level.Column(t.Context(), "my:sum")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for i := range ids.Len() {
		if sum, ok := want[ids.Str(i)]; ok {
			found++
			if got.Int(i) != sum {
				t.Errorf("%s: sum of %s is %d, want %d", path, ids.Str(i), got.Int(i), sum)
			}
		}
	}
	if found != len(want) {
		t.Errorf("%s has %d of %d samples", path, found, len(want))
	}
}

// TestAFileThatCannotBeInspected: a file that File refuses ends the run, and nothing is left of it.
func TestAFileThatCannotBeInspected(t *testing.T) {
	for _, form := range []build.Form{build.ZIP, build.Folder} {
		dir := t.TempDir()
		path := filepath.Join(dir, "out")
		samples := []build.Sample{{ID: "a", Bytes: []byte("a")}, {ID: "b", Bytes: []byte("bad")},
			{ID: "c", Bytes: []byte("c")}}
		made := &build.Taco{Samples: &build.Tortilla{Samples: samples}, Collection: collection()}
		_, err := build.Create(t.Context(), made, path, build.Options{Form: form, Inspect: sums})
		if err == nil || !strings.Contains(err.Error(), "bad file") {
			t.Errorf("%v: %v", form, err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%v leaves %v: %v", form, left, err)
		}
	}
}

// TestNothingIsInspectedInVain: what cannot be written is refused before files are read for columns.
func TestNothingIsInspectedInVain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "there")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	samples := []build.Sample{{ID: "a", Bytes: []byte("a")}, {ID: "b", Bytes: []byte("b")}}
	for name, o := range map[string]build.Options{
		"a folder": {Form: build.Folder},
		"TACO 3":   {Form: build.CozipFolder},
		"a ZIP":    {Form: build.ZIP},
	} {
		o.Inspect = func(levels []build.Level) build.Inspection {
			t.Errorf("%s: files are inspected", name)
			return sums(levels)
		}
		made := &build.Taco{Samples: &build.Tortilla{Samples: samples}, Collection: collection()}
		if _, err := build.Create(t.Context(), made, dir, o); !errors.Is(err, fault.Unsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
