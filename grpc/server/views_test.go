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
	enter := func(name string) *view {
		t.Helper()
		at := filepath.Join(root, name)
		if err := os.MkdirAll(at, 0o777); err != nil {
			t.Fatal(err)
		}
		one, err := v.of(quiet, []string{at})
		if err != nil {
			t.Fatal(err)
		}
		if closed[name] == nil || closed[name].n > 0 {
			closed[name] = &closings{Opener: one.loader.Opener}
			one.loader.Opener = closed[name]
		}
		return one
	}
	crowd := func(name string) {
		for i := range 10 * keptViews {
			enter(fmt.Sprint(name, i)).leave()
			if n := len(v.byKey); n > keptViews+3 {
				t.Fatalf("%d views are kept", n)
			}
		}
	}

	calling := enter("calling")
	slow, e := newSlow(Options{})
	opening, dataset := enter("opening"), enter("dataset")
	ctx, giveUp := context.WithCancel(t.Context())
	begin := func(ctx context.Context, one *view, name string) {
		go func() {
			defer one.leave()
			if got, err := e.open(ctx, one, loader.Spec{Source: name, BatchSize: 1}, nil, 0); err == nil {
				e.put(got)
			}
		}()
		synctest.Wait()
	}
	begin(t.Context(), dataset, "dataset")
	close(slow.release)
	synctest.Wait()
	slow.release = make(chan struct{})
	begin(ctx, opening, "opening")
	crowd("first")
	for _, name := range []string{"calling", "opening", "dataset"} {
		if closed[name].n != 0 {
			t.Errorf("the view of the %s is closed", name)
		}
	}
	if again := enter("dataset"); again != dataset {
		t.Error("another call gets a view of its own, so that it cannot use the dataset")
	} else {
		again.leave()
	}

	calling.leave()
	giveUp()
	e.shut()
	synctest.Wait()
	crowd("second")
	for name, c := range closed {
		if kept := v.byKey[viewKey(filepath.Join(root, name))] != nil; c.n != 1 && !kept {
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
