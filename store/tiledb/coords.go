package tiledb

import (
	"context"
	"slices"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
)

// tileCells has the coordinates of the cells of a tile.
type tileCells struct {
	tile   int64
	box    Box
	cells  int
	planes []byte  // as stored: all of the first dimension, then all of the second, …
	coords []Coord // the same, decoded
	rows   []int   // cells in the box that is read
}

// coordTile decodes a tile of coordinates. They are stored by dimension: all of the first, then all
// of the second, ….
func (r *Reader) coordTile(ctx context.Context, f *Fragment, tile int64, next nextTiles) (planes []byte,
	cells int, err error) {
	s := r.a.Schema
	e := s.DimType.elem(len(s.Dims))
	e.Alt = e.Size
	size, err := r.fixedSize(f, tile, e.Cell)
	if err != nil {
		return nil, 0, err
	}
	planes, err = r.decodeKept(ctx, tile, next, size, s.Coords, e)
	return planes, int(size) / e.Cell, err
}

// eachTile calls f for some tiles of a fragment, with the rows that lie in b. Cells outside the
// bounding box of their tile are an error, because searches by box would miss them. The argument of
// f is reused for the next tile.
func (r *Reader) eachTile(ctx context.Context, fr *Fragment, tiles []int64, b Box, f func(c *tileCells) error) error {
	if len(tiles) == 0 {
		return nil
	}
	s := r.a.Schema
	tree, err := r.a.rtree(ctx, fr)
	if err != nil {
		return err
	}
	t, err := r.open(ctx, 0, fr, len(s.Attrs), false)
	if err != nil {
		return err
	}
	defer t.close()
	boxes, c := tree.levels[len(tree.levels)-1], &r.cells
	for k, tile := range tiles {
		if err := ctx.Err(); err != nil {
			return err
		}
		if c.planes, c.cells, err = r.coordTile(ctx, fr, tile,
			r.ahead.after(fr, tile, nextTiles{list: tiles[k+1:]})); err != nil {
			return err
		}
		c.tile, c.box = tile, boxes[tile]
		n := c.cells * len(s.Dims)
		c.coords = slices.Grow(c.coords[:0], n)[:n]
		s.DimType.loadAll(c.coords, c.planes)
		for d, i := range boxes[tile] {
			if row := outside(c.coords[d*c.cells:(d+1)*c.cells], i); row >= 0 {
				return t.fault(tile, fault.New(fault.Corrupt, "cell "+strconv.Itoa(row), fault.NoOffset,
					"coordinate %s of dimension %d is outside the bounding box of its tile",
					s.DimType.FormatCoord(c.coords[d*c.cells+row]), d))
			}
		}
		c.choose(boxes[tile], b)
		if err := f(c); err != nil {
			return err
		}
	}
	return nil
}

// choose selects the rows that lie in b.
func (c *tileCells) choose(tile, b Box) {
	c.rows = c.rows[:0]
	for row := range c.cells {
		c.rows = append(c.rows, row)
	}
	for d, i := range b {
		if !i.covers(tile[d]) {
			c.rows = keepWithin(c.rows, c.coords[d*c.cells:(d+1)*c.cells], i)
		}
	}
}

// dropShadowed removes the rows of a tile of sparse fragment i that do not show when whole is read.
func (a *Array) dropShadowed(c *tileCells, i int, whole Box) {
	if !a.shadowed[i] || whole.covers(c.box) {
		return
	}
	for _, g := range a.Fragments[i+1:] {
		if g.Dense && g.NonEmpty.intersects(c.box) {
			c.rows = slices.DeleteFunc(c.rows, func(row int) bool { return c.inside(row, g.NonEmpty) })
		}
	}
}

// inside reports whether a cell lies in a box.
func (c *tileCells) inside(row int, b Box) bool {
	for d, i := range b {
		if v := c.coords[d*c.cells+row]; v < i.Lo || v > i.Hi {
			return false
		}
	}
	return true
}
