package tiledb

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/kernel"
)

// WriteDense writes a box of cells of a dense array as a new fragment. values has the cells of
// every attribute, in row-major order. The array must be in a local directory. The open array does
// not see the new fragment: open it again.
func (a *Array) WriteDense(ctx context.Context, b Box, values []Values) error {
	return a.writeDense(ctx, b, values, timeAtCompletion, timeAtCompletion)
}

func (a *Array) writeDense(ctx context.Context, b Box, values []Values, from, to uint64) error {
	if _, _, err := a.Shape(b); err != nil {
		return err
	}
	return a.writeFragment(newName(from, to), b, func(w *writer) error {
		return w.dense(ctx, sequence(len(a.Schema.Attrs)), slices.Values([]Box{b}), func(Box) ([]Values, error) {
			return values, nil
		})
	})
}

// WriteDenseSlabs is WriteDense for a box that need not fit into memory. It cuts the box along the
// first dimension into slabs of one tile's extent, and calls next for each of them, which returns
// the cells of every attribute in row-major order. The tiles of the array must be in row-major
// order and its attributes of fixed length, because the tiles of a slab would not be contiguous in
// the files otherwise. An error of next ends the writing and is returned.
func (a *Array) WriteDenseSlabs(ctx context.Context, b Box, next func(slab Box) ([]Values, error)) error {
	schema := a.Schema
	if err := schema.check(b); err != nil {
		return err
	}
	for i := range schema.Attrs {
		if !schema.Dense || schema.TileOrder != RowMajor || schema.Attrs[i].Var() {
			return fault.New(fault.Unsupported, "sub-array", fault.NoOffset,
				"writing in slabs needs a dense array with tiles in row-major order and attributes of fixed length")
		}
	}
	return a.writeFragment(newName(timeAtCompletion, timeAtCompletion), b, func(w *writer) error {
		return w.dense(ctx, sequence(len(schema.Attrs)), schema.slabs(b), next)
	})
}

// slabs returns the slabs of a box.
func (s *Schema) slabs(b Box) iter.Seq[Box] {
	first := &s.Dims[0]
	return func(yield func(Box) bool) {
		for lo := b[0].Lo; ; {
			slab := slices.Clone(b)
			in := uint64(lo-first.Domain.Lo) % first.Extent // coordinates of the tile in front of lo
			slab[0].Lo = lo
			if left := Coord(first.Extent - in - 1); left < b[0].Hi-lo {
				slab[0].Hi = lo + left
			}
			if !yield(slab) || slab[0].Hi == b[0].Hi {
				return
			}
			lo = slab[0].Hi + 1
		}
	}
}

// writeFragment writes a fragment of a dense array for a box, whose tiles do writes.
func (a *Array) writeFragment(name string, b Box, do func(w *writer) error) error {
	fragment, err := a.Schema.newDense(name, b)
	if err != nil {
		return err
	}
	if err := a.checkTileCount(fragment.Tiles); err != nil {
		return err
	}
	w, err := a.startFragment(fragment)
	if err != nil {
		return err
	}
	defer w.folder.Remove() // after finish there is nothing to remove
	if err := do(w); err != nil {
		return err
	}
	return w.finish()
}

// listBytes is the memory that a tile of an attribute takes in the lists of a fragment's metadata:
// three numbers.
const listBytes = 24

// checkTileCount returns an error if the lists of a fragment with so many tiles exceed the limit.
func (a *Array) checkTileCount(tiles int64) error {
	if limit := a.o.MaxResult / int64(listBytes*(len(a.Schema.Attrs)+1)+16*len(a.Schema.Dims)); tiles > limit {
		return fault.New(fault.Limit, "fragment", fault.NoOffset, "%d tiles, at most %d", tiles, limit)
	}
	return nil
}

// dense writes the tiles of some attributes for one box after the other, in the order of the tiles. next returns the
// cells of these attributes in a box, in row-major order.
func (w *writer) dense(ctx context.Context, attrs []int, boxes iter.Seq[Box],
	next func(b Box) ([]Values, error)) (err error) {
	var files []*attrFiles
	defer func() {
		for _, f := range files {
			err = errors.Join(err, f.close())
		}
	}()
	for _, attr := range attrs {
		f, err := w.attribute(attr)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	alone := &Array{Schema: w.s, Fragments: []*Fragment{w.f}}
	for box := range boxes {
		values, err := next(box)
		if err != nil {
			return err
		}
		shape, cells, err := w.a.Shape(box)
		if err != nil {
			return err
		}
		if err := w.s.checkValues(attrs, cells, values); err != nil {
			return err
		}
		place := layout{axes: w.a.axes, stride: strides(shape, w.a.axes)}
		for i, f := range files {
			if err := f.dense(ctx, newDenseWalk(alone, 0, box, place), values[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// dense appends the tiles of a walk with the cells in v.
func (f *attrFiles) dense(ctx context.Context, walk *denseWalk, v Values) error {
	for goesOn := true; goesOn; goesOn = walk.next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := walk.place()
		var err error
		if f.data == nil {
			err = f.addFixed(n, f.fixedTile(&walk.plan, v.Data))
		} else {
			err = f.addVar(n, f.varCells(&walk.plan), v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fixedTile returns a tile with the cells that a plan takes to it.
func (f *attrFiles) fixedTile(plan *copyPlan, data []byte) []byte {
	attr := &f.w.s.Attrs[f.attr]
	size := attr.CellSize()
	n := int(f.w.s.tileCells) * size
	f.buf = slices.Grow(f.buf[:0], n)[:n]
	kernel.Fill(f.buf, attr.Type.fill())
	_ = plan.each(func(from, to, n, stride int) error {
		if stride == 1 {
			copy(f.buf[to*size:], data[from*size:(from+n)*size])
			return nil
		}
		kernel.CopyStrided(f.buf[to*size:], data[from*size:], n, stride*size, size, size)
		return nil
	})
	return f.buf
}

// varCells returns the number of each cell of a tile among the cells that a plan takes to it, or -1.
func (f *attrFiles) varCells(plan *copyPlan) []int {
	f.cells = slices.Grow(f.cells[:0], int(f.w.s.tileCells))[:f.w.s.tileCells]
	for i := range f.cells {
		f.cells[i] = -1
	}
	_ = plan.each(func(from, to, n, stride int) error {
		for k := range n {
			f.cells[to+k*stride] = from + k
		}
		return nil
	})
	return f.cells
}
