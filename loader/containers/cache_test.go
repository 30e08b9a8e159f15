package containers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/taco"
)

// coast returns the path of a container of the tests.
func coast(name string) string { return filepath.Join("..", "..", "testdata", "coast", name) }

// newCache returns a cache of local containers.
func newCache(t *testing.T) (*Cache, *countingFiles) {
	t.Helper()
	files := &countingFiles{Opener: &openers.Files{}, open: map[string]int{}}
	c := NewCache(resources.Options{Opener: files}, 1)
	t.Cleanup(c.Close)
	return c, files
}

// countingFiles counts the readers of each file that are open.
type countingFiles struct {
	source.Opener

	mu   sync.Mutex
	open map[string]int
}

type countedReader struct {
	source.Reader

	files *countingFiles
	name  string
}

func (f *countingFiles) Open(ctx context.Context, name string) (source.Reader, error) {
	r, err := f.Opener.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open[name]++
	return &countedReader{r, f, name}, nil
}

func (r *countedReader) Close() error {
	r.files.mu.Lock()
	r.files.open[r.name]--
	if r.files.open[r.name] == 0 {
		delete(r.files.open, r.name)
	}
	r.files.mu.Unlock()
	return r.Reader.Close()
}

// leaves returns the paths of a dataset's samples.
func leaves(ctx context.Context, d *taco.Dataset) (paths []string, err error) {
	for e, err := range d.Leaves(ctx, false) {
		if err != nil {
			return nil, err
		}
		paths = append(paths, e.Path)
	}
	return paths, nil
}

// ask returns the leaves of a set as the cache answers.
func ask(t *testing.T, c *Cache, set Set) (paths []string, err error) {
	t.Helper()
	_, err = c.Use(t.Context(), set, func(d *taco.Dataset) (err error) {
		paths, err = leaves(t.Context(), d)
		return err
	})
	return paths, err
}

// leavesOf returns the leaves of a set that is opened for this alone.
func leavesOf(t *testing.T, paths ...string) []string {
	t.Helper()
	d, err := taco.Open(t.Context(), &openers.Files{}, paths, taco.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	all, err := leaves(t.Context(), d)
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	return all
}

// TestARewrittenContainerIsOpenedAgain: an answer is of the file that is there, not of the one that is open.
func TestARewrittenContainerIsOpenedAgain(t *testing.T) {
	c, _ := newCache(t)
	path := filepath.Join(t.TempDir(), "data.tacozip")
	for _, name := range []string{"coast.tacozip", "flat.tacozip", "parts/coast_north.tacozip"} {
		b, err := os.ReadFile(coast(name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		want := leavesOf(t, coast(name))
		for range 2 {
			if got, err := ask(t, c, Set{Paths: []string{path}}); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %v, %v, want %v", name, got, err, want)
			}
		}
	}
}

// TestARewrittenTableOfAFolderIsReadAgain: the folder itself keeps its time when a file in it changes.
func TestARewrittenTableOfAFolderIsReadAgain(t *testing.T) {
	c, _ := newCache(t)
	path := filepath.Join(t.TempDir(), "coast_dir")
	if err := os.CopyFS(path, os.DirFS(coast("coast_dir"))); err != nil {
		t.Fatal(err)
	}
	set := Set{Paths: []string{path}}
	want := leavesOf(t, path)
	table := filepath.Join(path, "METADATA", "level0.parquet")
	whole, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range []int{0, 1, 0} {
		if err := os.WriteFile(table, whole[:len(whole)-cut], 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := ask(t, c, set)
		if cut > 0 && err == nil {
			t.Error("a damaged table is not noticed")
		}
		if cut == 0 && (err != nil || !slices.Equal(got, want)) {
			t.Errorf("%v, %v, want %v", got, err, want)
		}
	}
}

// TestWarningsComeWithEveryAnswer: what joining of columns warned of is said again for a dataset that is open.
func TestWarningsComeWithEveryAnswer(t *testing.T) {
	c, _ := newCache(t)
	other := filepath.Join(t.TempDir(), "b")
	if err := os.CopyFS(other, os.DirFS(coast("coast_dir"))); err != nil {
		t.Fatal(err)
	}
	var want []string
	d, err := taco.Open(t.Context(), &openers.Files{}, []string{coast("coast.tacozip"), other},
		taco.Options{Warn: func(s string) { want = append(want, s) }})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := d.SQLTable(t.Context(), "data"); err != nil || len(want) == 0 {
		t.Fatalf("these two join without a warning: %v", err)
	}
	for range 3 {
		got, err := c.Use(t.Context(), Set{Paths: []string{coast("coast.tacozip"), other}},
			func(d *taco.Dataset) error {
				_, err := d.SQLTable(t.Context(), "data")
				return err
			})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
}

// TestFewContainersStayOpen: a program that goes through a folder of containers does not keep their
// files open, nor does one that asks from many goroutines, nor one whose questions fail.
func TestFewContainersStayOpen(t *testing.T) {
	c, files := newCache(t)
	dir := t.TempDir()
	b, err := os.ReadFile(coast("flat.tacozip"))
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for i := range 3 * maxSets {
		path := filepath.Join(dir, fmt.Sprintf("%d.tacozip", i))
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		wait.Go(func() {
			if _, err := c.Use(t.Context(), Set{Paths: []string{path}}, func(d *taco.Dataset) error {
				_, err := leaves(t.Context(), d)
				return err
			}); err != nil {
				t.Error(err)
			}
			if _, err := c.Use(t.Context(), Set{Paths: []string{path + ".none"}}, nil); err == nil {
				t.Error("a container that is not there")
			}
		})
	}
	wait.Wait()
	files.mu.Lock()
	open := len(files.open)
	files.mu.Unlock()
	if open > maxSets {
		t.Errorf("%d files are open, want at most %d", open, maxSets)
	}
	c.Close()
	files.mu.Lock()
	defer files.mu.Unlock()
	if len(files.open) != 0 {
		t.Errorf("after Close %v are open", files.open)
	}
}

// TestSetsDifferByAllThatOpensThem: a set with another way to join columns is another dataset.
func TestSetsDifferByAllThatOpensThem(t *testing.T) {
	c, _ := newCache(t)
	paths := []string{coast("flat.tacozip")}
	var seen []*taco.Dataset
	for _, set := range []Set{{Paths: paths}, {Paths: paths, Chosen: true}, {Paths: paths, BasePath: "elsewhere"}} {
		if _, err := c.Use(t.Context(), set, func(d *taco.Dataset) error {
			seen = append(seen, d)
			return nil
		}); err != nil && !strings.Contains(err.Error(), "elsewhere") {
			t.Error(err)
		}
	}
	for i, d := range seen {
		if slices.Contains(seen[:i], d) {
			t.Errorf("set %d has the dataset of another one", i)
		}
	}
}
