package server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/source"
)

// closings counts how often the files of a view are closed.
type closings struct {
	source.Opener
	n int
}

func (c *closings) Close() error { c.n++; return nil }

// TestViewsAreBounded promises that a client whose tokens name a root each leaves no more than keptViews views behind,
// each closed once, and that no view is closed that a call, an opening or a dataset uses.
func TestViewsAreBounded(t *testing.T) { synctest.Test(t, testViewsAreBounded) }

func testViewsAreBounded(t *testing.T) {
	root := t.TempDir()
	v := newViews(loader.Options{Roots: []string{root}, Budget: resources.NewBudget(1 << 30)})
	closed := map[string]*closings{}
	enter := func(name string) (*fileView, func()) {
		t.Helper()
		at := filepath.Join(root, name)
		if err := os.MkdirAll(at, 0o777); err != nil {
			t.Fatal(err)
		}
		one, leave := v.of(quiet, []string{at})
		if closed[name] == nil || closed[name].n > 0 {
			closed[name] = &closings{Opener: one.loader.Opener}
			one.loader.Opener = closed[name]
		}
		return one, leave
	}
	crowd := func(name string) {
		for i := range 10 * keptViews {
			_, leave := enter(fmt.Sprint(name, i))
			leave()
			if n := v.cache.Len(); n > keptViews+3 {
				t.Fatalf("%d views are kept", n)
			}
		}
	}

	_, leaveCall := enter("calling")
	slow, e := newSlow(Options{})
	opening, leaveOpening := enter("opening")
	dataset, leaveDataset := enter("dataset")
	ctx, giveUp := context.WithCancel(t.Context())
	begin := func(ctx context.Context, one *fileView, leave func(), name string) {
		go func() {
			defer leave()
			if got, err := e.open(ctx, one, loader.Spec{Source: name, BatchSize: 1}, nil, 0); err == nil {
				e.put(got)
			}
		}()
		synctest.Wait()
	}
	begin(t.Context(), dataset, leaveDataset, "dataset")
	close(slow.release)
	synctest.Wait()
	slow.release = make(chan struct{})
	begin(ctx, opening, leaveOpening, "opening")
	crowd("first")
	for _, name := range []string{"calling", "opening", "dataset"} {
		if closed[name].n != 0 {
			t.Errorf("the view of the %s is closed", name)
		}
	}
	again, leave := enter("dataset")
	if again != dataset {
		t.Error("another call gets a view of its own, so that it cannot use the dataset")
	}
	leave()
	leaveCall()
	giveUp()
	e.shut()
	synctest.Wait()
	crowd("second")
	for name, c := range closed {
		if c.n > 1 {
			t.Errorf("%s was closed %d times", name, c.n)
		}
	}
	v.close()
	for name, c := range closed {
		if c.n != 1 {
			t.Errorf("at the end %s was closed %d times", name, c.n)
		}
	}
}
