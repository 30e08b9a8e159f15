package tiledb

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/source"
)

// MergeOptions configure Merge.
type MergeOptions struct {
	// Remove deletes the merged fragments and those that were hidden before, like TileDB's vacuum.
	// A reader that has the array open may then find its files gone, and earlier states of the
	// array (Options.Until) are lost.
	Remove bool
	// Progress, if it is not nil, is called with the number of finished tiles and of all tiles,
	// from one goroutine.
	Progress func(done, total int64)
}

// Merged describes the result of Merge.
type Merged struct {
	Fragment string   // name of the new fragment, or "" if there were fewer than two
	Bytes    int64    // size of its files
	From     []string // names of the merged fragments, in the order in which later ones win
	Before   int64    // size of their files
	Removed  []string // names of the removed fragments
	Freed    int64    // size of their files
}

// Merge writes the visible cells of a local dense array as one new fragment, which hides the fragments
// that it was made from. The new fragment covers their bounding box: cells in it that were never
// written get the fill value. With fewer than two fragments nothing is written. The new fragment
// appears in one step when it is complete, so that an interrupted or failed run leaves the array as
// it was. The open array does not change: open it again to see the new fragment.
//
// Merge works tile by tile. It holds one tile of every attribute, and for each tile of the new
// fragment its box and 24 bytes for each attribute; Options.MaxResult limits the sum of the latter.
//
// Several fragments of a sparse array are fault.Unsupported: tiledb.consolidate of TileDB's Python
// package merges them.
//
// Fragments that were all written in the same millisecond are fault.Unsupported without Remove,
// because a fragment hides only fragments of another time.
func (a *Array) Merge(ctx context.Context, o MergeOptions) (*Merged, error) {
	bad := func(what string) (*Merged, error) {
		return nil, fault.WithFile(fault.New(fault.Unsupported, "array", fault.NoOffset, "%s", what), a.uri)
	}
	if source.IsRemote(a.uri) {
		return bad("it is remote: only local arrays can be written to")
	}
	if a.o.Since != 0 || a.o.Until != 0 {
		return bad("an array that was opened at a time cannot be written to")
	}
	merged := &Merged{}
	if len(a.Fragments) > 1 {
		if !a.Schema.Dense {
			return bad("it is sparse: chaski merges fragments of dense arrays only. tiledb.consolidate and " +
				"tiledb.vacuum of the Python package tiledb merge these, and chaski reads the result")
		}
		start, end := a.Fragments[0].From, uint64(0)
		for _, f := range a.Fragments {
			end = max(end, f.To)
		}
		// The merged fragment would have the same range of time as its sources: the random part of
		// its name would decide which of them count.
		if start == end && !o.Remove {
			return bad("its fragments were all written in the same millisecond, so that a merged one does not " +
				"hide them: they must be removed")
		}
		if err := a.merge(ctx, merged, start, end, o.Progress); err != nil {
			return nil, err
		}
	}
	if !o.Remove {
		return merged, nil
	}
	old := a.Hidden
	if merged.Fragment != "" {
		// The sources are the only other copy of the cells. They may be deleted because the new fragment is on the
		// disk: writer.finish waits for that.
		old = slices.Concat(a.Fragments, a.Hidden)
	}
	for _, fragment := range old {
		n, err := folderBytes(fragment.path())
		if err == nil {
			err = removeFragment(fragment.path())
		}
		if err != nil {
			return merged, fault.WithFile(err, fragment.uri)
		}
		merged.Removed, merged.Freed = append(merged.Removed, fragment.Name), merged.Freed+n
	}
	return merged, nil
}

// merge writes the new fragment.
func (a *Array) merge(ctx context.Context, m *Merged, from, to uint64, report func(done, total int64)) (err error) {
	for _, fragment := range a.Fragments {
		n, err := folderBytes(fragment.path())
		if err != nil {
			return fault.WithFile(err, fragment.uri)
		}
		m.From, m.Before = append(m.From, fragment.Name), m.Before+n
	}
	name := newName(from, to)
	err = a.writeFragment(name, a.NonEmpty(), func(w *writer) error { return w.join(ctx, report) })
	if err != nil {
		return err
	}
	m.Fragment = name
	m.Bytes, err = folderBytes(pathname.Join(source.LocalPath(a.uri), name))
	return err
}

// join writes the visible cells of all fragments, tile by tile.
func (w *writer) join(ctx context.Context, report func(done, total int64)) error {
	done, total := int64(0), w.f.Tiles*int64(len(w.s.Attrs))
	boxes := func(yield func(Box) bool) {
		for box := range w.regions() {
			if !yield(box) {
				return
			}
			if done++; report != nil {
				report(done, total)
			}
		}
	}
	for i := range w.s.Attrs {
		reader := w.a.NewReader()
		reader.ahead.whole = w.f.NonEmpty
		err := w.dense(ctx, []int{i}, boxes, func(b Box) ([]Values, error) {
			values, err := reader.Dense(ctx, i, b)
			return []Values{values}, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// regions returns the part of each tile of a dense fragment that lies in its box, in the order of the tiles.
func (w *writer) regions() iter.Seq[Box] {
	alone := &Array{Schema: w.s, Fragments: []*Fragment{w.f}}
	// The walk over all tiles copies no cells, so its strides do not matter.
	noStrides := layout{axes: w.a.axes, stride: make([]int, len(w.s.Dims))}
	return func(yield func(Box) bool) {
		walk := newDenseWalk(alone, 0, w.f.NonEmpty, noStrides)
		for goesOn := true; goesOn; goesOn = walk.next() {
			walk.place()
			if !yield(slices.Clone(walk.region)) {
				return
			}
		}
	}
}

// folderBytes returns the size of the files in a directory, or 0 if it does not exist.
func folderBytes(path string) (n int64, err error) {
	list, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	for _, e := range list {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			n += info.Size()
		}
	}
	return n, err
}
