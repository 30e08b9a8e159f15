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
	planes []tileData // of each dimension
	coords []Coord    // the same, decoded: all of the first dimension, then all of the second, …
	times  []byte     // when each cell was written, or nil
	rows   []int      // cells in the box that is read
}

// coordFiles are the open files of coordinates of a fragment.
type coordFiles struct {
	r       *Reader
	f       *Fragment
	columns []*openColumn // see Fragment.coordParts
}

// openCoords opens the files of coordinates of a fragment. Some of its tiles are read.
func (r *Reader) openCoords(ctx context.Context, f *Fragment, tiles []int64) (*coordFiles, error) {
	files := &coordFiles{r: r, f: f}
	parts := f.coordParts(r.a.Schema)
	tiles = r.ahead.expected(f, tiles, 2*len(parts))
	for _, p := range parts {
		column, err := r.column(ctx, f, p)
		if err != nil {
			return nil, errors.Join(err, files.close())
		}
		column.expect(slices.Values(tiles))
		files.columns = append(files.columns, column)
	}
	return files, nil
}

func (c *coordFiles) close() (err error) {
	for _, column := range c.columns {
		err = errors.Join(err, column.close())
	}
	return err
}

// tile decodes a tile of coordinates into t. In a dry run the first and the last cell stand for all.
func (c *coordFiles) tile(ctx context.Context, t *tileCells, tile int64) error {
	schema := c.r.a.Schema
	t.cells, t.planes, t.times = int(c.f.cells(schema, tile)), t.planes[:0], nil
	for d, column := range c.columns {
		data, err := column.tile(ctx, tile, 0, t.cells-1)
		switch {
		case err != nil:
			return err
		case c.r.dry != nil:
			t.rows = append(t.rows[:0], 0, t.cells-1)
		case !c.f.x.dimTypes: // one file has all of the first dimension, then all of the second, …
			size := schema.DimType.Size()
			for plane := range slices.Chunk(data.data, t.cells*size) {
				t.planes = append(t.planes, tileData{size: size, data: plane})
			}
		case d == len(schema.Dims):
			t.times = data.data
		default:
			t.planes = append(t.planes, data)
		}
	}
	return nil
}

// load decodes the coordinates of a tile.
func (c *tileCells) load(s *Schema) {
	n := c.cells * len(s.Dims)
	c.coords = slices.Grow(c.coords[:0], n)[:n]
	for d := range c.planes {
		plane, dst := &c.planes[d], c.coords[d*c.cells:(d+1)*c.cells]
		if plane.size > 0 {
			s.Type(d).loadAll(dst, plane.data)
			continue
		}
		for row := range dst {
			dst[row] = textCoord(plane.at(row))
		}
	}
}

// eachTile calls f for some tiles of a fragment, with the rows that lie in b. Cells outside the bounding box of their
// tile are an error. The argument of f is reused for the next tile.
func (r *Reader) eachTile(ctx context.Context, fr *Fragment, tiles []int64, b Box, f func(c *tileCells) error) error {
	if len(tiles) == 0 {
		return nil
	}
	schema := r.a.Schema
	tree, err := r.a.rtree(ctx, fr)
	if err != nil {
		return err
	}
	files, err := r.openCoords(ctx, fr, tiles)
	if err != nil {
		return err
	}
	defer files.close()
	boxes, cells := tree.levels[len(tree.levels)-1], &r.cells
	for _, tile := range tiles {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := files.tile(ctx, cells, tile); err != nil {
			return err
		}
		cells.tile, cells.box = tile, boxes[tile]
		if r.dry != nil {
			r.dry.exact = r.dry.exact && b.covers(cells.box)
			if err := f(cells); err != nil {
				return err
			}
			continue
		}
		cells.load(schema)
		for d, i := range boxes[tile] {
			// A cell outside the box of its tile is an error, because searches by box would miss it.
			if row := outside(cells.coords[d*cells.cells:(d+1)*cells.cells], i); row >= 0 {
				file := files.columns[min(d, len(files.columns)-1)] // formats 3 and 4 have one for all dimensions
				return file.fault(tile, fault.New(fault.Corrupt, "cell "+strconv.Itoa(row),
					"coordinate %s of dimension %d is outside the bounding box of its tile",
					schema.Type(d).FormatCoord(cells.coords[d*cells.cells+row]), d))
			}
		}
		cells.choose(boxes[tile], b)
		cells.dropTimes(&r.a.o)
		if err := f(cells); err != nil {
			return err
		}
	}
	return nil
}

// dropTimes removes the rows of cells that were written at another time than the one that the array was opened at.
func (c *tileCells) dropTimes(o *Options) {
	if c.times != nil && (o.Since > 0 || o.Until > 0) {
		c.rows = slices.DeleteFunc(c.rows, func(row int) bool {
			written := u64(c.times, row)
			return !o.includes(written, written)
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
	for _, later := range a.Fragments[i+1:] {
		if later.Dense && later.NonEmpty.intersects(c.box) {
			c.rows = slices.DeleteFunc(c.rows, func(row int) bool { return c.inside(row, later.NonEmpty) })
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
