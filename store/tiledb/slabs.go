package tiledb

import (
	"context"
	"errors"
	"os"

	"github.com/chaski-eo/chaski/fault"
)

// WriteDenseSlabs is WriteDense for a box that need not fit in memory. It is cut along the first dimension into
// slabs, each of as many coordinates as a tile has of them; next is called for one after the other, and returns
// the cells of every attribute in it, in row-major order. Tiles have to be in row-major order and attributes of
// fixed length. An error of next ends it and is returned.
func (a *Array) WriteDenseSlabs(ctx context.Context, b Box, next func(slab Box) ([]Values, error)) error {
	s := a.Schema
	if err := s.check(b); err != nil {
		return err
	}
	for i := range s.Attrs {
		if !s.Dense || s.TileOrder != RowMajor || s.Attrs[i].Var() {
			return fault.New(fault.Unsupported, "sub-array", fault.NoOffset, "slabs are of dense arrays with tiles in row-major order and attributes of fixed length")
		}
	}
	f, err := s.newDense(newName(atTheEnd, atTheEnd), b)
	if err != nil {
		return err
	}
	w, err := a.startFragment(f)
	if err != nil {
		return err
	}
	defer os.RemoveAll(w.dir)
	w.tree = emptyTree(s)
	if err := w.slabs(ctx, b, next); err != nil {
		return err
	}
	return w.finish()
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
		in := uint64(lo-first.Domain.Lo) % first.Extent // of the tile, in front of lo
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
		to := layout{axes: w.a.axes, stride: strides(shape, w.a.axes)}
		for i, t := range files {
			if err := w.fixedTiles(ctx, t, newDenseWalk(alone, 0, slab, to), i, values[i].Data); err != nil {
				return err
			}
		}
		if slab[0].Hi == b[0].Hi {
			return nil
		}
	}
}
