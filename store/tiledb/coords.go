package tiledb

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
)

// tileCells has the coordinates of the cells of a tile.
type tileCells struct {
	tile   int64
	box    Box
	cells  int
	planes []coordPlane // as stored, of each dimension
	coords []Coord      // the same, decoded: all of the first dimension, then all of the second, …
	times  []byte       // when each cell was written, or nil
	rows   []int        // cells in the box that is read
}

// coordPlane has the coordinates of a tile along one dimension, as they are stored.
type coordPlane struct {
	size int // bytes of a coordinate; 0 for strings
	data []byte
	offs []byte // of strings
}

// at returns the coordinate of a cell as it is stored.
func (p *coordPlane) at(row int) []byte {
	if p.size > 0 {
		return p.data[row*p.size : (row+1)*p.size]
	}
	lo, hi := u64(p.offs, row), cellEnd(p.offs, row, uint64(len(p.data)))
	if lo == hi { // the data of a tile of empty strings is not decoded
		return nil
	}
	return p.data[lo:hi]
}

// coordFiles are the open files of coordinates of a fragment.
type coordFiles struct {
	r     *Reader
	f     *Fragment
	first int        // of the files: see which
	sizes [][]uint64 // of the tiles of strings, by dimension
	open  int        // number of open columns
}

// openCoords opens the files of coordinates of a fragment: one, or one for each dimension, and that
// of the times of cells if they matter.
func (r *Reader) openCoords(ctx context.Context, f *Fragment) (*coordFiles, error) {
	c := &coordFiles{r: r, f: f}
	if !f.x.dimTypes {
		_, err := r.open(ctx, 0, f, len(r.a.Schema.Attrs), tileOffsets)
		return c, err
	}
	dims := len(r.a.Schema.Dims)
	c.first, c.sizes = which(0), make([][]uint64, dims)
	columns := dims
	if f.foot.times {
		columns++
	}
	for d := range columns {
		var err error
		if d < dims && r.a.Schema.Type(d) == StringASCII {
			c.sizes[d], err = r.openVar(ctx, which(d), f, r.a.column(d))
		} else {
			_, err = r.open(ctx, which(d), f, r.a.column(d), tileOffsets)
			r.file[which(d)+1] = tileFile{}
		}
		if err != nil {
			return nil, errors.Join(err, c.close())
		}
		c.open++
	}
	return c, nil
}

func (c *coordFiles) close() (err error) {
	if !c.f.x.dimTypes {
		return c.r.file[0].close()
	}
	for d := range c.open {
		err = errors.Join(err, c.r.closeVar(which(d)))
	}
	return err
}

// fault adds the tile and the file of a dimension to an error.
func (c *coordFiles) fault(d int, tile int64, err error) error {
	if !c.f.x.dimTypes {
		d = 0
		return c.r.file[0].fault(tile, err)
	}
	return c.r.file[which(d)].fault(tile, err)
}

// tile decodes a tile of coordinates into t. Formats 3 and 4 have one file for all of them: all of
// the first dimension, then all of the second, ….
func (c *coordFiles) tile(ctx context.Context, t *tileCells, tile int64, next nextTiles) error {
	if c.f.x.dimTypes {
		return c.tileByDim(ctx, t, tile, next)
	}
	reader := c.r
	s, dims := reader.a.Schema, len(reader.a.Schema.Dims)
	elem := s.DimType.elem(dims)
	elem.Alt = elem.Size
	size, err := reader.fixedSize(0, c.f, tile, elem.Cell)
	if err != nil {
		return err
	}
	data, err := reader.decodeKept(ctx, 0, tile, next, size, c.f.schema.Coords, elem)
	if err != nil {
		return err
	}
	t.cells, t.planes = int(size)/elem.Cell, t.planes[:0]
	for d := range dims {
		n := t.cells * elem.Size
		t.planes = append(t.planes, coordPlane{size: elem.Size, data: data[d*n : (d+1)*n]})
	}
	return nil
}

func (c *coordFiles) tileByDim(ctx context.Context, t *tileCells, tile int64, next nextTiles) error {
	reader := c.r
	dims := len(reader.a.Schema.Dims)
	t.cells, t.planes, t.times = int(c.f.cells(reader.a.Schema, tile)), t.planes[:0], nil
	for d := range c.open {
		how := c.f.codec(reader.a, reader.a.column(d))
		if d < dims && how.t == StringASCII {
			offs, data, err := reader.varTile(ctx, which(d), c.f, reader.a.column(d), c.sizes[d], tile, next, 0,
				t.cells-1)
			if err != nil {
				return err
			}
			t.planes = append(t.planes, coordPlane{data: data, offs: offs})
			continue
		}
		size, err := reader.fixedSize(which(d), c.f, tile, how.t.Size())
		if err != nil {
			return err
		}
		b, err := reader.decodeKept(ctx, which(d), tile, next, size, how.p, how.e)
		if err != nil {
			return err
		}
		if d == dims {
			t.times = b
		} else {
			t.planes = append(t.planes, coordPlane{size: how.t.Size(), data: b})
		}
	}
	return nil
}

// load decodes the coordinates of a tile.
func (c *tileCells) load(s *Schema) {
	n := c.cells * len(s.Dims)
	c.coords = slices.Grow(c.coords[:0], n)[:n]
	for d := range c.planes {
		coordPlane, dst := &c.planes[d], c.coords[d*c.cells:(d+1)*c.cells]
		if coordPlane.size > 0 {
			s.Type(d).loadAll(dst, coordPlane.data)
			continue
		}
		for row := range dst {
			dst[row] = textCoord(coordPlane.at(row))
		}
	}
}

// eachTile calls f for some tiles of a fragment, with the rows that lie in b. Cells outside the
// bounding box of their tile are an error, because searches by box would miss them. The argument of
// f is reused for the next tile.
func (r *Reader) eachTile(ctx context.Context, fr *Fragment, tiles []int64, b Box, f func(c *tileCells) error) error {
	if len(tiles) == 0 {
		return nil
	}
	schema := r.a.Schema
	tree, err := r.a.rtree(ctx, fr)
	if err != nil {
		return err
	}
	files, err := r.openCoords(ctx, fr)
	if err != nil {
		return err
	}
	defer files.close()
	boxes, c := tree.levels[len(tree.levels)-1], &r.cells
	for k, tile := range tiles {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := files.tile(ctx, c, tile, r.ahead.after(fr, tile, nextTiles{list: tiles[k+1:]})); err != nil {
			return err
		}
		c.tile, c.box = tile, boxes[tile]
		c.load(schema)
		for d, i := range boxes[tile] {
			if row := outside(c.coords[d*c.cells:(d+1)*c.cells], i); row >= 0 {
				return files.fault(d, tile, fault.New(fault.Corrupt, "cell "+strconv.Itoa(row), fault.NoOffset,
					"coordinate %s of dimension %d is outside the bounding box of its tile",
					schema.Type(d).FormatCoord(c.coords[d*c.cells+row]), d))
			}
		}
		c.choose(boxes[tile], b)
		c.dropTimes(&r.a.o)
		if err := f(c); err != nil {
			return err
		}
	}
	return nil
}

// dropTimes removes the rows of cells that were written at another time than the one that the array
// was opened at.
func (c *tileCells) dropTimes(o *Options) {
	if c.times != nil && (o.Since > 0 || o.Until > 0) {
		c.rows = slices.DeleteFunc(c.rows, func(row int) bool {
			pos := u64(c.times, row)
			return !o.includes(pos, pos)
		})
	}
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
