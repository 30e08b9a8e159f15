package tiledb

import (
	"bufio"
	"context"
	"errors"
	"os"
	"slices"

	"github.com/chaski-eo/chaski/internal/kernel"
	"github.com/chaski-eo/chaski/store/tiledb/filter"
)

// WriteDense writes a box of cells of a dense array as a new fragment. values has the cells of
// every attribute, in row-major order; attributes have cells of one size. The array must be in a
// local directory. The open array does not see the new fragment: open it again. Tests of what reads
// arrays make them so.
func (a *Array) WriteDense(ctx context.Context, b Box, values []Values) error {
	shape, cells, err := a.Shape(b)
	if err != nil {
		return err
	}
	fragment, err := a.Schema.newDense(b)
	if err != nil {
		return err
	}
	if err := a.Schema.checkValues(cells, values); err != nil {
		return err
	}
	writer := &writer{a: a, x: &sealer{key: a.key, enc: filter.NewEncoder(a.key)}, f: fragment}
	if writer.folder, err = a.newFragmentFolder(); err != nil {
		return err
	}
	defer writer.folder.Remove() // after finish there is nothing to remove
	if err := errors.Join(writer.tiles(ctx, b, shape, values), writer.close()); err != nil {
		return err
	}
	return writer.finish()
}

// tiles writes the tiles of all attributes, of a box of a shape.
func (w *writer) tiles(ctx context.Context, b Box, shape []int, values []Values) error {
	if err := w.create(); err != nil {
		return err
	}
	alone := &Array{Schema: w.a.Schema, Fragments: []*Fragment{w.f}}
	place := layout{axes: w.a.axes, stride: strides(shape, w.a.axes)}
	for i, f := range w.files {
		if err := f.write(ctx, newDenseWalk(alone, 0, b, place), values[i].Data); err != nil {
			return err
		}
	}
	return nil
}

// attrFile is the file of an attribute that is being written.
type attrFile struct {
	x       *sealer
	attr    *Attr
	file    *os.File
	out     *bufio.Writer
	offsets []uint64 // of the tiles
	end     uint64
	cells   []byte // of a tile
	stored  []byte // the same, filtered
}

// write appends the tiles of a walk with the cells in data.
func (f *attrFile) write(ctx context.Context, walk *denseWalk, data []byte) (err error) {
	size := f.attr.CellSize()
	n := int(walk.s.tileCells) * size
	f.cells = slices.Grow(f.cells[:0], n)[:n]
	for range walk.tiles() {
		if err := ctx.Err(); err != nil {
			return err
		}
		kernel.Fill(f.cells, f.attr.Type.fill())
		_ = walk.plan.each(func(from, to, n, stride int) error {
			if stride == 1 {
				copy(f.cells[to*size:], data[from*size:(from+n)*size])
				return nil
			}
			kernel.CopyStrided(f.cells[to*size:], data[from*size:], n, stride*size, size, size)
			return nil
		})
		elem := f.attr.Type.elem(int(f.attr.Values))
		if f.stored, err = f.x.enc.Tile(f.stored[:0], f.cells, f.attr.Pipeline, elem); err != nil {
			return err
		}
		if _, err := f.out.Write(f.stored); err != nil {
			return err
		}
		f.offsets = append(f.offsets, f.end)
		f.end += uint64(len(f.stored))
	}
	return nil
}
