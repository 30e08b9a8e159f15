package model

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store"
)

// tree is a reader of two samples with two and one files. It counts how often a level is read.
type tree struct{ reads [2]int }

// file is one that cannot be closed.
type file struct{ source.Memory }

var errClosed = errors.New("closed")

func (file) Close() error { return errClosed }

func level(ids ...string) *Level {
	v := tables.NewStrings(ids, nil)
	return &Level{Table: tables.FromVectors([]string{"id"}, []*tables.Vector{v}), IDs: v}
}

var ids = [2][]string{{"a", "__TACOPAD__0"}, {"x", "y", "z"}}

func (r *tree) Level(_ context.Context, k int) (*Level, error) {
	r.reads[k]++
	return level(ids[k]...), nil
}

func (r *tree) Parents(context.Context, int) ([]int32, error) { return []int32{1, 0, 1}, nil }

func (r *tree) Entry(_ context.Context, k, row int) (store.Entry, error) {
	return store.Entry{ID: ids[k][row], Folder: k == 0}, nil
}

func (r *tree) Verify(context.Context, *Report) error { return nil }
func (r *tree) Bytes() int64                          { return 7 }

// TestContainer promises that a container asks its reader for each level once, and answers what readers have in common:
// children in storage order, placeholders where the form has them, and errors about rows that do not exist.
func TestContainer(t *testing.T) {
	ctx, r := t.Context(), &tree{}
	c := New(Source{URI: "u", File: file{}}, ZIP).Open(r, 2)
	for range 2 {
		if kids, err := c.Children(ctx, 0, 1); err != nil || !slices.Equal(kids, []int32{0, 2}) {
			t.Fatal(kids, err)
		}
	}
	if kids, err := c.Children(ctx, 1, 0); err != nil || kids != nil {
		t.Error(kids, err)
	}
	if e, err := c.Entry(ctx, 0, 1); err != nil || !e.Padding || e.Level != 0 || e.Row != 1 || !e.Folder {
		t.Error(e, err)
	}
	if r.reads != [2]int{1, 1} || c.Levels() != 2 || c.Bytes() < 7 {
		t.Error(r.reads, c.Levels(), c.Bytes())
	}
	for what, err := range map[string]error{
		"row":      second(c.Entry(ctx, 1, 3)),
		"negative": second(c.Entry(ctx, 1, -1)),
		"children": second(c.Children(ctx, 0, 2)),
		"level":    second(c.Table(ctx, 2)),
		"ids":      second(c.IDs(ctx, -1)),
	} {
		if fault.KindOf(err) != fault.NotFound {
			t.Errorf("%s: %v", what, err)
		}
	}
	c.Form = TortillaFile // ids of placeholders are those of samples here
	if e, err := c.Entry(ctx, 0, 1); err != nil || e.Padding {
		t.Error(e, err)
	}
	if err := c.Close(); !errors.Is(err, errClosed) {
		t.Error(err)
	}
}

func second[T any](_ T, err error) error { return err }

// TestTrees promises that trees are the same if types and ids are, whatever their counts and placeholders.
func TestTrees(t *testing.T) {
	of := func(n int64, ids ...string) *Tree {
		tree := &Tree{Hierarchy: map[string][]TreeFolder{"1": {{N: n, Type: []string{"FILE", "FILE"}, ID: ids}}}}
		tree.Root.Type = "FOLDER"
		return tree
	}
	for other, want := range map[*Tree]bool{of(9, "x", "y"): true, of(1, "x", "__TACOPAD__3"): true,
		of(1, "y", "x"): false, of(1, "x", "__TACOPAD__x"): false, {}: false, nil: false} {
		if got := of(1, "x", "y").Same(other); got != want {
			t.Errorf("%+v: %t", other, got)
		}
	}
	if n := of(1).Levels(); n != 2 {
		t.Error(n)
	}
}

// hanging is a tree whose second level hangs until it is released.
type hanging struct {
	tree
	began, release chan struct{}
}

func (r *hanging) Level(ctx context.Context, k int) (*Level, error) {
	if k == 1 {
		close(r.began)
		<-r.release
	}
	return r.tree.Level(ctx, k)
}

// TestALevelThatHangs: while a level hangs, those that were read are there, others wait until their context ends, and
// who counts memory does not wait.
func TestALevelThatHangs(t *testing.T) {
	r := &hanging{began: make(chan struct{}), release: make(chan struct{})}
	c := New(Source{URI: "u", File: file{}}, ZIP).Open(r, 2)
	if _, err := c.Table(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { _, err := c.Table(t.Context(), 1); done <- err }()
	<-r.began
	if table, err := c.Table(t.Context(), 0); err != nil || table.Len() != 2 || c.Levels() != 2 {
		t.Error("a level that was read: ", err)
	}
	if ids, err := c.IDs(t.Context(), 0); err != nil || ids.Len() != 2 {
		t.Error("its ids: ", err)
	}
	if n := c.Bytes(); n != 0 {
		t.Errorf("%d bytes", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, entry := c.Entry(ctx, 0, 0)
	_, path := c.Path(ctx, 0, 0)
	_, children := c.Children(ctx, 0, 0)
	_, table := c.Table(ctx, 1)
	for _, err := range []error{entry, path, children, table, c.Deepen(ctx), c.Verify(ctx, nil)} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v, of a wait that ended", err)
		}
	}
	close(r.release)
	if err := <-done; err != nil || c.Bytes() < 7 {
		t.Error(err)
	}
	if e, err := c.Entry(t.Context(), 1, 2); err != nil || e.ID != "z" {
		t.Error("afterwards: ", e, err)
	}
}
