package tiledb

import (
	"context"
	"slices"

	"github.com/chaski-eo/chaski/internal/kernel"
)

// Dense reads all values of one attribute in a box of a dense array, in row-major order, independent of the orders of
// the array. Cells that were never written have the fill value of the attribute. Formats that lack it have the fill
// value of the type: the lowest value of a signed type or a datetime, the highest of an unsigned one, NaN, 0x80 for
// char, and 0 for strings. A cell of variable length then holds one fill value.
func (r *Reader) Dense(ctx context.Context, attr int, b Box) (Values, error) {
	_, cells, err := r.a.Shape(b)
	if err != nil {
		return Values{}, err
	}
	return r.read(attr, cells, func(p columnPart, to sink) error { return r.densePart(ctx, to, p, b, r.a.axes) })
}

// DenseInto is Dense for an attribute of fixed length, into dst, whose length must be the number of
// cells times Attr.CellSize. The cells are in row-major order of the dimensions in axes, the
// slowest first; nil means the array's own order. Cells without a value have the fill value.
func (r *Reader) DenseInto(ctx context.Context, dst []byte, attr int, b Box, axes []int) error {
	if axes == nil {
		axes = r.a.axes
	}
	_, cells, err := r.a.Shape(b)
	if err != nil {
		return err
	}
	attribute := &r.a.Schema.Attrs[attr]
	values := attribute.values(attr)
	if r.dry == nil && (attribute.Var() || len(dst) != cells*values.size) {
		panic("tiledb: the length of dst is not the size of the cells")
	}
	err = r.densePart(ctx, &fixedCells{dst, values.size, values.fill}, values, b, axes)
	if err != nil || !attribute.Nullable {
		return err
	}
	validity := attribute.validity(attr)
	r.valid = slices.Grow(r.valid[:0], cells)[:cells]
	if err := r.densePart(ctx, &fixedCells{r.valid, 1, validity.fill}, validity, b, axes); err != nil || r.dry != nil {
		return err
	}
	for i, v := range r.valid {
		if v == 0 {
			kernel.Fill(dst[i*values.size:(i+1)*values.size], values.fill)
		}
	}
	return nil
}

// densePart gives a part of an attribute in a box to a sink.
func (r *Reader) densePart(ctx context.Context, to sink, p columnPart, b Box, axes []int) error {
	shape, cells, err := r.a.Shape(b)
	if err != nil {
		return err
	}
	place := layout{axes: axes, stride: strides(shape, axes)}
	if !r.ahead.on {
		if err := r.ahead.expect(ctx, r.a, p.column, b); err != nil {
			return err
		}
	}
	// Filling is skipped if fragments cover the box, because every byte would be overwritten.
	if _, covered := r.a.start(b); !covered && r.dry == nil {
		to.fill(0, cells)
	}
	return r.a.layers(b, r.ahead.outer, func(i int) error {
		if r.a.Fragments[i].Dense {
			return r.denseFragment(ctx, to, i, p, b, place)
		}
		return r.sparseFragment(ctx, to, i, p, b, place)
	})
}

// denseFragment gives the cells that dense fragment i holds of a box to a sink.
func (r *Reader) denseFragment(ctx context.Context, to sink, i int, p columnPart, b Box, place layout) error {
	var column *openColumn // nil if the fragment lacks the attribute
	if fragment := r.a.Fragments[i]; fragment.has(p.column) {
		var err error
		if column, err = r.column(ctx, fragment, p); err != nil {
			return err
		}
		defer column.close()
		column.expect(slices.Values(r.ahead.needs[fragment]))
	}
	// One value serves all tiles, because it is moved to the heap.
	var data tileData
	walk := newDenseWalk(r.a, i, b, place)
	for tile := range walk.tiles() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if column != nil {
			var err error
			if data, err = column.tile(ctx, tile, walk.plan.first, walk.plan.last); err != nil {
				return err
			}
		}
		if r.dry != nil {
			continue
		}
		err := walk.plan.each(func(dst, row, n, stride int) error {
			if column == nil {
				to.fill(dst, n)
				return nil
			}
			return to.put(&data, dst, row, n, stride)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// sparseFragment gives the cells of sparse fragment i that show in a box to a sink.
func (r *Reader) sparseFragment(ctx context.Context, to sink, i int, p columnPart, b Box, place layout) error {
	hits := &matches{dims: len(r.a.Schema.Dims), maximum: r.a.o.MaxResult}
	tiles, err := r.a.shownTiles(ctx, i, b)
	if err != nil {
		return err
	}
	whole := r.ahead.outer
	if whole == nil {
		whole = b
	}
	err = r.eachTile(ctx, r.a.Fragments[i], tiles, b, func(c *tileCells) error {
		if r.dry != nil {
			return hits.add(i, c)
		}
		r.a.dropShadowed(c, i, whole)
		if err := hits.add(i, c); err != nil {
			return err
		}
		for _, row := range c.rows {
			index := 0 // of the cell in the result
			for d := range b {
				index += int(c.coords[d*c.cells+row]-b[d].Lo) * place.stride[d]
			}
			hits.place = append(hits.place, index)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return r.collect(ctx, to, hits, p)
}
