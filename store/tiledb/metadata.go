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
func (a *Array) list(ctx context.Context, f *Fragment, kind listKind, c *columnStorage) ([]uint64, error) {
	return f.lists.Get(ctx, listKey{kind, c.at}, func() (l []uint64, err error) {
		err = a.withMetadata(ctx, f, func(r source.Reader) error {
			l, err = a.readList(ctx, r, f, kind, c)
			return err
		})
		return l, err
	})
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
	return f.tree.Get(ctx, func() (tree *rtree, err error) {
		err = a.withMetadata(ctx, f, func(r source.Reader) error {
			content, err := openGeneric(ctx, r, a.key, rtreePart, f.foot.rtree, f.foot.start, a.o.MaxTile)
			if err == nil {
				tree, err = parseRTree(content, f.x, a.Schema.types(), f.Tiles)
			}
			return err
		})
		return tree, err
	})
}
