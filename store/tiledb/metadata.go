package tiledb

import (
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

// withMetadata calls do with the open metadata file of a fragment.
func (a *Array) withMetadata(ctx context.Context, f *Fragment, do func(r source.Reader) error) error {
	file := f.uri + "/" + metadataName
	reader, err := a.store.Open(ctx, file)
	if err != nil {
		return err
	}
	defer reader.Close()
	return fault.WithFile(do(reader), file)
}

// list returns one of the lists of the metadata, which has one number for each tile. It is read
// when it is first needed.
func (a *Array) list(ctx context.Context, f *Fragment, kind listKind, c *columnStorage) (l []uint64, err error) {
	key := listKey{kind, c.at}
	unlock, err := f.reading.Lock(ctx, key)
	if err != nil {
		return nil, err
	}
	defer unlock()
	f.mu.Lock()
	known := f.lists[key]
	f.mu.Unlock()
	if known != nil {
		return known, nil
	}
	err = a.withMetadata(ctx, f, func(r source.Reader) error {
		l, err = a.readList(ctx, r, f, kind, c)
		return err
	})
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lists[key] = l
	return l, nil
}

// readList reads a list of a column from the metadata.
func (a *Array) readList(ctx context.Context, r source.Reader, f *Fragment, kind listKind,
	s *columnStorage) ([]uint64, error) {
	part := lists[kind].name + " of " + s.what
	data, err := openGeneric(ctx, r, a.key, part, f.foot.offsets[kind][s.at], f.foot.start, a.o.MaxTile)
	if err != nil {
		return nil, err
	}
	numbers := &byteCursor{b: data, part: part, base: fault.NoOffset}
	count := numbers.u64("count")
	if numbers.bad == nil && count != uint64(f.Tiles) {
		return nil, numbers.fault(fault.Corrupt, 0, "%d entries for %d tiles", count, f.Tiles)
	}
	list := numbers.u64s(count, "numbers")
	if err := numbers.end(); err != nil || kind == varTileSizes {
		return list, err
	}
	// A tile ends where the next one begins, and the last one at the end of the file. Empty tiles
	// and offsets that go backwards must be refused, since sizes are differences of them.
	size := f.foot.sizes[kind][s.at]
	for i, begin := range list {
		next := size
		if i+1 < len(list) {
			next = list[i+1]
		}
		if begin >= next || next > size {
			return nil, numbers.fault(fault.Corrupt, 8+8*i, "tile %d lies at %d to %d in a file of %d", i, begin, next,
				size)
		}
	}
	return list, nil
}

// rtree returns the R-tree of a sparse fragment. It is read when it is first needed.
func (a *Array) rtree(ctx context.Context, f *Fragment) (*rtree, error) {
	unlock, err := f.readingTree.Lock(ctx, struct{}{})
	if err != nil {
		return nil, err
	}
	defer unlock()
	f.mu.Lock()
	tree := f.tree
	f.mu.Unlock()
	if tree != nil {
		return tree, nil
	}
	err = a.withMetadata(ctx, f, func(r source.Reader) error {
		content, err := openGeneric(ctx, r, a.key, rtreePart, f.foot.rtree, f.foot.start, a.o.MaxTile)
		if err == nil {
			tree, err = parseRTree(content, f.x, a.Schema.types(), f.Tiles)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tree = tree
	return tree, nil
}
