package tiledb

import (
	"context"
	"errors"
	"slices"

	"github.com/chaski-eo/chaski/fault"
)

// consolidateDense writes the visible cells of all fragments as one, tile by tile.
func (a *Array) consolidateDense(ctx context.Context, name string, done *progress) error {
	schema := a.Schema
	fragment, err := schema.newDense(name, a.NonEmpty())
	if err != nil {
		return err
	}
	if err := a.checkTileCount(fragment.Tiles); err != nil {
		return err
	}
	writer, err := a.startFragment(fragment)
	if err != nil {
		return err
	}
	defer writer.folder.Remove() // after finish there is nothing to remove
	done.of(fragment.Tiles * int64(len(schema.Attrs)))
	writer.progress = done
	for i := range schema.Attrs {
		if schema.Attrs[i].Var() {
			err = writer.joinVar(ctx, i)
		} else {
			err = writer.joinFixed(ctx, i)
		}
		if err != nil {
			return err
		}
	}
	return writer.finish()
}

// eachRegion calls do for the region of each tile of the new fragment, in the order of the tiles,
// with a walk that visits only this tile.
func (w *writer) eachRegion(do func(b Box, walk *denseWalk) error) error {
	fragmentOnly := &Array{Schema: w.s, Fragments: []*Fragment{w.f}}
	// The walk over all tiles copies no cells, so its strides do not matter.
	noStrides := layout{axes: w.a.axes, stride: make([]int, len(w.s.Dims))}
	walk := newDenseWalk(fragmentOnly, 0, w.f.NonEmpty, noStrides)
	for goesOn := true; goesOn; goesOn = walk.next() {
		walk.place()
		box := slices.Clone(walk.region)
		shape, _, err := w.a.Shape(box)
		if err != nil {
			return err
		}
		if err := do(box, newDenseWalk(fragmentOnly, 0, box,
			layout{axes: w.a.axes, stride: strides(shape, w.a.axes)})); err != nil {
			return err
		}
		w.progress.step()
	}
	return nil
}

func (w *writer) joinFixed(ctx context.Context, attr int) (err error) {
	tiles, err := w.create(attr, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tiles.close()) }()
	reader, size := w.a.NewReader(), w.s.Attrs[attr].CellSize()
	reader.ahead.whole = w.f.NonEmpty
	var cells []byte
	return w.eachRegion(func(b Box, walk *denseWalk) error {
		_, n, err := w.a.Shape(b)
		if err != nil {
			return err
		}
		if int64(n) > w.a.o.MaxResult/int64(size) {
			return fault.New(fault.Limit, "tile", fault.NoOffset, "%d cells of %d bytes, at most %d bytes", n,
				size, w.a.o.MaxResult)
		}
		cells = slices.Grow(cells[:0], n*size)[:n*size]
		if err := reader.DenseInto(ctx, cells, attr, b, nil); err != nil {
			return err
		}
		return w.fixedTiles(ctx, tiles, walk, attr, cells)
	})
}

func (w *writer) joinVar(ctx context.Context, attr int) (err error) {
	files, err := w.createVar(attr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.close()) }()
	reader := w.a.NewReader()
	reader.ahead.whole = w.f.NonEmpty
	return w.eachRegion(func(b Box, walk *denseWalk) error {
		values, err := reader.Dense(ctx, attr, b)
		if err != nil {
			return err
		}
		return files.dense(ctx, walk, values)
	})
}
