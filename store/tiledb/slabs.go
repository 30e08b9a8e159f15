package tiledb

import (
	"context"
	"errors"

	"github.com/chaski-eo/chaski/fault"
)

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
	writer, err := a.startDense(newName(timeAtCompletion, timeAtCompletion), b)
	if err != nil {
		return err
	}
	defer writer.folder.Remove() // after finish there is nothing to remove
	if err := writer.slabs(ctx, b, next); err != nil {
		return err
	}
	return writer.finish()
}

func (w *writer) slabs(ctx context.Context, b Box, next func(slab Box) ([]Values, error)) (err error) {
	files := make([]*tiles, len(w.s.Attrs))
	defer func() {
		for _, t := range files {
			if t != nil {
				err = errors.Join(err, t.close())
			}
		}
	}()
	for i := range files {
		if files[i], err = w.create(i, false); err != nil {
			return err
		}
	}
	alone := &Array{Schema: w.s, Fragments: []*Fragment{w.f}}
	first := &w.s.Dims[0]
	slab := append(Box{}, b...)
	for lo := b[0].Lo; ; lo = slab[0].Hi + 1 {
		in := uint64(lo-first.Domain.Lo) % first.Extent // coordinates of the tile in front of lo
		slab[0] = Interval{lo, b[0].Hi}
		if left := Coord(first.Extent - in - 1); left < b[0].Hi-lo {
			slab[0].Hi = lo + left
		}
		values, err := next(slab)
		if err != nil {
			return err
		}
		shape, cells, err := w.a.Shape(slab)
		if err != nil {
			return err
		}
		if err := w.s.checkValues(cells, values); err != nil {
			return err
		}
		target := layout{axes: w.a.axes, stride: strides(shape, w.a.axes)}
		for i, t := range files {
			if err := w.fixedTiles(ctx, t, newDenseWalk(alone, 0, slab, target), i, values[i].Data); err != nil {
				return err
			}
		}
		if slab[0].Hi == b[0].Hi {
			return nil
		}
	}
}
