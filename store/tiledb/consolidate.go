package tiledb

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

// Consolidate is Merge with Remove, for arrays of more than one fragment; others stay as they are.
func (a *Array) Consolidate(ctx context.Context) error {
	if len(a.Fragments) < 2 {
		return nil
	}
	_, err := a.Merge(ctx, MergeOptions{Remove: true})
	return err
}

// MergeOptions of Merge.
type MergeOptions struct {
	// Remove deletes the fragments that were merged, and those that were hidden already: TileDB's vacuum. A reader that
	// has the array open may find its files gone, and the array as it was at a time before (Options.Until) is gone too.
	Remove bool
	// Progress, if it is not nil, is told how many tiles are done, of how many. It is called from one goroutine.
	Progress func(done, total int64)
}

// Merged is what Merge did.
type Merged struct {
	Fragment string   // name of the new fragment, "" where there were fewer than two
	Bytes    int64    // of its files
	From     []string // names of the fragments that are in it, in the order in which later ones win
	Before   int64    // bytes of their files
	Removed  []string // names of the fragments that were removed
	Freed    int64    // bytes of their files
}

// Merge writes all that the fragments of a local array show as one new fragment, which hides them from then on. A dense
// fragment bounds all of them: cells in it that were never written are written with the fill value. With fewer than two fragments nothing is
// written. The new fragment appears in one step, when it is complete; a run that is broken off, or fails, leaves the
// array as it was. The array that is open does not change: open it again to see the new fragment.
//
// It goes tile by tile. What is in memory is a tile of every attribute, of a sparse array one of every fragment, and for
// each tile of the new fragment where it lies in each attribute's file (24 bytes) and its box; that is bounded by
// Options.MaxResult. Fragments whose cells do not lie in the order that the schema says are sorted in memory, all of them,
// which Options.MaxResult bounds too.
//
// Fragments that were all written in the same millisecond are fault.Unsupported without Remove: a fragment of no other
// time hides none.
func (a *Array) Merge(ctx context.Context, o MergeOptions) (*Merged, error) {
	bad := func(what string) (*Merged, error) {
		return nil, fault.WithFile(fault.New(fault.Unsupported, "array", fault.NoOffset, "%s", what), a.uri)
	}
	if source.IsRemote(a.uri) {
		return bad("it is not local: only local arrays are written")
	}
	if a.o.Since != 0 || a.o.Until != 0 {
		return bad("nothing is written to an array that was opened at a time")
	}
	m := &Merged{}
	if len(a.Fragments) > 1 {
		from, to := a.Fragments[0].From, uint64(0)
		for _, f := range a.Fragments {
			to = max(to, f.To)
		}
		if from == to && !o.Remove {
			return bad("its fragments were all written in the same millisecond: one that they are merged into does not hide them, they have to be removed")
		}
		if err := a.merge(ctx, m, from, to, &tally{report: o.Progress}); err != nil {
			return nil, err
		}
	}
	if !o.Remove {
		return m, nil
	}
	old := a.Hidden
	if m.Fragment != "" {
		if err := settle(filepath.Join(source.LocalPath(a.uri), m.Fragment)); err != nil {
			return m, fault.WithFile(err, a.uri)
		}
		old = slices.Concat(a.Fragments, a.Hidden)
	}
	for _, f := range old {
		n, err := folderBytes(f.path())
		if err == nil {
			err = removeFragment(f.path())
		}
		if err != nil {
			return m, fault.WithFile(err, f.uri)
		}
		m.Removed, m.Freed = append(m.Removed, f.Name), m.Freed+n
	}
	return m, nil
}

// merge writes the new fragment.
func (a *Array) merge(ctx context.Context, m *Merged, from, to uint64, done *tally) (err error) {
	for _, f := range a.Fragments {
		n, err := folderBytes(f.path())
		if err != nil {
			return fault.WithFile(err, f.uri)
		}
		m.From, m.Before = append(m.From, f.Name), m.Before+n
	}
	name := newName(from, to)
	if a.Schema.Dense {
		err = a.consolidateDense(ctx, name, done)
	} else {
		err = a.consolidateSparse(ctx, name, done)
	}
	if err != nil {
		return err
	}
	m.Fragment = name
	m.Bytes, err = folderBytes(filepath.Join(source.LocalPath(a.uri), name))
	return err
}

// folderBytes returns the bytes of the files in a folder. One that is gone has none.
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

// settle waits until the files of a fragment, and its name, are on the disk: what else holds its cells can go then, whenever
// the machine stops.
func settle(dir string) error {
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		f, err := os.OpenFile(filepath.Join(dir, e.Name()), os.O_RDWR, 0)
		if err != nil {
			return err
		}
		if err := errors.Join(fsync(f), f.Close()); err != nil {
			return err
		}
	}
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if f, err := os.Open(d); err == nil {
			_ = fsync(f) // not every system has this for folders
			_ = f.Close()
		}
	}
	return nil
}

// fsync is os.File.Sync but in tests.
var fsync = (*os.File).Sync

// listBytes is the memory of a tile of an attribute in the lists of a fragment's metadata.
const listBytes = 24

// room refuses a fragment of so many tiles that their lists are over the limit.
func (a *Array) room(tiles int64) error {
	if most := a.o.MaxResult / int64(listBytes*(len(a.Schema.Attrs)+1)+16*len(a.Schema.Dims)); tiles > most {
		return fault.New(fault.Limit, "fragment", fault.NoOffset, "%d tiles, at most %d", tiles, most)
	}
	return nil
}
