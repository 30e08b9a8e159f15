package tiledb

import (
	"context"
	"errors"
	"slices"
)

// WriteDense writes a box of cells of a dense array as a new fragment. values has the cells of
// every attribute, in row-major order. The array must be in a local directory. The open array does
// not see the new fragment: open it again.
func (a *Array) WriteDense(ctx context.Context, b Box, values []Values) error {
	return a.writeDense(ctx, b, values, timeAtCompletion, timeAtCompletion)
}

func (a *Array) writeDense(ctx context.Context, b Box, values []Values, from, to uint64) error {
	shape, cells, err := a.Shape(b)
	if err != nil {
		return err
	}
	schema := a.Schema
	if err := schema.checkValues(cells, values); err != nil {
		return err
	}
	writer, err := a.startDense(newName(from, to), b)
	if err != nil {
		return err
	}
	defer writer.folder.Remove() // after finish there is nothing to remove
	alone := &Array{Schema: schema, Fragments: []*Fragment{writer.f}}
	rowMajor := layout{axes: a.axes, stride: strides(shape, a.axes)}
	for i := range schema.Attrs {
		if schema.Attrs[i].Var() {
			err = writer.denseVar(ctx, newDenseWalk(alone, 0, b, rowMajor), i, values[i])
		} else {
			err = writer.denseFixed(ctx, newDenseWalk(alone, 0, b, rowMajor), i, values[i].Data)
		}
		if err != nil {
			return err
		}
	}
	return writer.finish()
}

// startDense starts a fragment for a box of a dense array.
func (a *Array) startDense(name string, b Box) (*writer, error) {
	fragment, err := a.Schema.newDense(name, b)
	if err != nil {
		return nil, err
	}
	return a.startFragment(fragment)
}

func (w *writer) denseFixed(ctx context.Context, walk *denseWalk, attr int, data []byte) (err error) {
	tiles, err := w.create(attr, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tiles.close()) }()
	return w.fixedTiles(ctx, tiles, walk, attr, data)
}

// fixedTiles appends the tiles of a walk with the cells in data.
func (w *writer) fixedTiles(ctx context.Context, t *tiles, walk *denseWalk, attr int, data []byte) (err error) {
	a := &w.s.Attrs[attr]
	size := a.CellSize()
	n := int(w.s.tileCells) * size
	if cap(w.tile) < n {
		w.tile = make([]byte, n)
	}
	tile := w.tile[:n]
	for goesOn := true; goesOn; goesOn = walk.next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := walk.place()
		fillCells(tile, a.Type.fill())
		_ = walk.plan.each(func(start, stop, n, stride int) error {
			if stride == 1 {
				copy(tile[stop*size:], data[start*size:(start+n)*size])
				return nil
			}
			for k := range n {
				copy(tile[(stop+k*stride)*size:], data[(start+k)*size:(start+k+1)*size])
			}
			return nil
		})
		if w.lists[tileOffsets][attr][n], err = t.add(tile, a.Pipeline, a.Type.elem(int(a.Values)), 0); err != nil {
			return err
		}
	}
	w.end[attr] = t.at
	return nil
}

func (w *writer) denseVar(ctx context.Context, walk *denseWalk, attr int, v Values) (err error) {
	files, err := w.createVar(attr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.close()) }()
	return files.dense(ctx, walk, v)
}

// dense appends the tiles of a walk with the cells in v.
func (t *varFiles) dense(ctx context.Context, walk *denseWalk, v Values) error {
	for goesOn := true; goesOn; goesOn = walk.next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		t.cells = slices.Grow(t.cells[:0], int(t.w.s.tileCells))[:t.w.s.tileCells]
		for i := range t.cells {
			t.cells[i] = -1
		}
		n := walk.place()
		_ = walk.plan.each(func(start, end, n, stride int) error {
			for k := range n {
				t.cells[end+k*stride] = start + k
			}
			return nil
		})
		if err := t.add(n, t.cells, v); err != nil {
			return err
		}
	}
	return nil
}
