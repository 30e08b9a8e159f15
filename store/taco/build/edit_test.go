package build

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// editTo makes the title of a container n, and a column n of each level.
func editTo(ctx context.Context, path string, n int) error {
	return Edit(ctx, path, Changes{Describe: func(c *Collection) error {
		c.Title = strconv.Itoa(n)
		return nil
	}}, Options{More: func(_ context.Context, levels []Level) (all []*tables.Table, err error) {
		for _, l := range levels {
			v := make([]int64, len(l.Rows))
			for i := range v {
				v[i] = int64(n)
			}
			all = append(all, tables.FromVectors([]string{"n"}, []*tables.Vector{tables.NewInts(int64Type, v, nil)}))
		}
		return all, nil
	}})
}

// editedTo returns the n of the last editTo: the title, and the column n of every row. The container has to be whole,
// with the files of numbered(0).
func editedTo(t *testing.T, path string) int {
	t.Helper()
	d, err := taco.Open(t.Context(), &source.Files{}, []string{path}, taco.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := d.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := CollectionOf(d)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(c.Title)
	if err != nil {
		t.Fatal(err)
	}
	for k := range d.Levels() {
		all, err := d.Level(t.Context(), k)
		if err != nil {
			t.Fatal(err)
		}
		v, err := all.Column(t.Context(), "n")
		if err != nil {
			t.Fatal(err)
		}
		for i := range v.Len() {
			if v.Int(i) != int64(n) {
				t.Fatalf("the title says %d, and row %d of level %d %d", n, i, k, v.Int(i))
			}
		}
	}
	files := map[string][]byte{"a/x": make([]byte, 2000), "b/x": make([]byte, 1000), "b/y": []byte("0")}
	for name, want := range files {
		e, err := d.Resolve(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := taco.Section(t.Context(), &source.Files{}, e)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, r.Size())
		if err := errors.Join(r.ReadAt(t.Context(), b, 0), r.Close()); err != nil || !bytes.Equal(b, want) {
			t.Fatalf("%s has other bytes: %v", name, err)
		}
	}
	return n
}

// newEdited makes a container of a form, whose n is 0.
func newEdited(t *testing.T, form Form) (path string) {
	t.Helper()
	dir := t.TempDir()
	path = map[Form]string{ZIP: filepath.Join(dir, "a.tacozip"), Folder: filepath.Join(dir, "a")}[form]
	set := numbered(0)
	v := func(texts ...string) *tables.Table {
		return tables.FromVectors([]string{"v"}, []*tables.Vector{tables.NewStrings(texts, nil)})
	}
	set.Columns = columnsOf(v("1", "2"), v("1", "2", "1", "2"))
	if _, err := Create(t.Context(), set, path, Options{}); err != nil {
		t.Fatal(err)
	}
	if err := editTo(t.Context(), path, 0); err != nil {
		t.Fatal(err)
	}
	return path
}

var editedForms = []Form{ZIP, Folder}

// TestEdit: a container is as it was, but for what was changed. archive/zip reads every entry of an edited ZIP, and no
// byte of it moved but those of TACO_HEADER; a folder has the files that it had.
func TestEdit(t *testing.T) {
	beside := []string{"README", "DATA/a/x.aux.xml", "METADATA/notes"}
	for _, form := range editedForms {
		path := newEdited(t, form)
		before, _ := os.ReadFile(path)
		file := filepath.Join(path, "DATA", "a", "x")
		old, _ := os.Stat(file)
		if form == Folder {
			for _, name := range beside {
				if err := os.WriteFile(filepath.Join(path, name), []byte("r"), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(os.Symlink("../README", filepath.Join(path, "DATA", "link")),
				os.Chmod(filepath.Join(path, "DATA"), 0o750), os.Chmod(path, 0o700)); err != nil {
				t.Fatal(err)
			}
		}
		for n := 1; n < 4; n++ {
			if err := editTo(t.Context(), path, n); err != nil {
				t.Fatal(err)
			}
			if got := editedTo(t, path); got != n {
				t.Fatalf("got %d, want %d", got, n)
			}
		}
		switch form {
		case ZIP:
			after, _ := os.ReadFile(path)
			if head := 157; !bytes.Equal(after[head:len(before)], before[head:]) {
				t.Error("bytes of the ZIP moved")
			}
			z, err := zip.OpenReader(path)
			if err != nil {
				t.Fatal(err)
			}
			names := map[string]bool{}
			for _, f := range z.File {
				r, err := f.Open()
				if err == nil {
					_, err = io.Copy(io.Discard, r) // it checks the CRC-32
				}
				if err != nil || names[f.Name] {
					t.Errorf("%s (twice: %v): %v", f.Name, names[f.Name], err)
				}
				names[f.Name] = true
			}
			if want := 1 + 4 + 2 + 2 + 1; len(names) != want { // header, files, folders, levels, collection
				t.Errorf("%d entries, want %d", len(names), want)
			}
			_ = z.Close()
		case Folder:
			now, err := os.Stat(file)
			if err != nil || !os.SameFile(old, now) {
				t.Errorf("the files are other ones: %v", err)
			}
			for _, name := range append(beside, "DATA/link") {
				if b, err := os.ReadFile(filepath.Join(path, name)); string(b) != "r" {
					t.Errorf("%s: %q %v", name, b, err)
				}
			}
			for name, want := range map[string]os.FileMode{"": 0o700, "DATA": 0o750} {
				if now, err := os.Stat(filepath.Join(path, name)); err != nil || now.Mode().Perm() != want {
					t.Errorf("%q: %v %v, want mode %v", name, now, err, want)
				}
			}
		}
		c := Changes{Drop: []string{"n"}, Rename: map[string]string{"l1:n": "m"}}
		if err := Edit(t.Context(), path, c, Options{}); err != nil {
			t.Fatal(err)
		}
		d, err := taco.Open(t.Context(), &source.Files{}, []string{path}, taco.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for k := range 2 {
			l, err := d.Level(t.Context(), k)
			if want := k == 1; err != nil || l.Index("n") >= 0 || l.Index("m") >= 0 != want {
				t.Errorf("form %d, level %d: %v %v", form, k, l.Columns(), err)
			}
		}
		if schema := string(d.Collection()); strings.Contains(schema, `"n",`) || !strings.Contains(schema, `"m",`) {
			t.Error(schema)
		}
		_ = d.Close()
	}
}

// TestEditRefuses: what is refused leaves the container as it was.
func TestEditRefuses(t *testing.T) {
	for _, form := range editedForms {
		path := newEdited(t, form)
		was := contentAt(t, path)
		for want, c := range map[string]Changes{
			"l7:n":                {Drop: []string{"l7:n"}},
			"what":                {Drop: []string{"what"}},
			"itself":              {Drop: []string{"id"}},
			"internal":            {Rename: map[string]string{"n": "internal:x"}},
			"x: is there already": {Rename: map[string]string{"n": "x", "v": "x"}},
			`no column "n"`:       {Rename: map[string]string{"n": "x", "l0:n": "y"}},
			"description":         {Describe: func(c *Collection) error { c.Description = ""; return nil }},
		} {
			if err := Edit(t.Context(), path, c, Options{}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", want, err)
			}
		}
		lock, err := durable.Lock(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := editTo(t.Context(), path, 1); err == nil || !strings.Contains(err.Error(), "another run") {
			t.Errorf("a second run: %v", err)
		}
		_ = lock.Close()
		if contentAt(t, path) != was {
			t.Errorf("form %d has changed", form)
		}
	}
}

// TestEveryFaultOfAnEdit: whichever write, sync, rename or exchange fails, Edit says so, the container is the old one
// or the new one, and the next run works.
func TestEveryFaultOfAnEdit(t *testing.T) {
	race.SkipCovered(t)
	f := &faults{}
	f.inject(t)
	for _, form := range editedForms {
		operations := 1 << 20
		for at := -1; at <= operations; at++ {
			if at == 0 {
				at++
			}
			if testing.Short() && at > 1 && at < operations-3 && at%4 != 0 {
				continue
			}
			f.at = -1
			path := newEdited(t, form)
			f.at, f.n = at, 0
			err := editTo(t.Context(), path, 1)
			if at < 0 {
				if operations = f.n; err != nil || operations < 3 {
					t.Fatal(operations, err)
				}
				continue
			}
			f.at = -1
			if !errors.Is(err, errInjected) {
				t.Fatalf("form %d, operation %d of %d fails: %v", form, at, operations, err)
			}
			if n := editedTo(t, path); n > 1 || n == 1 && at < operations-1 {
				t.Errorf("form %d, operation %d of %d fails, and leaves %d", form, at, operations, n)
			}
			if err := editTo(t.Context(), path, 2); err != nil || editedTo(t, path) != 2 {
				t.Fatalf("form %d, after operation %d of %d: %v", form, at, operations, err)
			}
		}
	}
}

// The child of TestKillsOfEdits edits the container in this variable, until it is killed.
const killedEdit = "CHASKI_TEST_KILLED_EDIT"

// TestKillsOfEdits: a process that edits is killed at random moments. The container is always that of one of its edits,
// and what the next edit leaves has no remains of the killed one. CHASKI_SOAK_EDIT has the kills of 'make soak-edit'.
func TestKillsOfEdits(t *testing.T) {
	if path := os.Getenv(killedEdit); path != "" {
		from := editedTo(t, path)
		for n := range 1 << 20 { // ends even if nobody kills it
			if err := editTo(t.Context(), path, from+n+1); err != nil {
				t.Fatal(err)
			}
			fmt.Println("written")
		}
		return
	}
	kills := 2
	if text := os.Getenv("CHASKI_SOAK_EDIT"); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for _, form := range editedForms {
		path := newEdited(t, form)
		for i := range kills {
			killWriter(t, rng, "TestKillsOfEdits", killedEdit+"="+path)
			n := editedTo(t, path)
			if n < 1 {
				t.Fatalf("form %d, kill %d: no edit was written", form, i)
			}
			if err := editTo(t.Context(), path, n+1); err != nil || editedTo(t, path) != n+1 {
				t.Fatalf("form %d, after kill %d: %v", form, i, err)
			}
			if form != ZIP {
				continue
			}
			z, err := zip.OpenReader(path)
			if err != nil {
				t.Fatal(err)
			}
			_ = z.Close()
			if st, err := os.Stat(path); err == nil && st.Size() > 8<<20 { // every edit leaves its old tables
				path = newEdited(t, form)
			}
		}
	}
}
