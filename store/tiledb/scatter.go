package tiledb

import "context"

// scatter finds the cells of sparse fragment i of a dense array that show in a box, and their
// places in the result.
func (r *Reader) scatter(ctx context.Context, i int, b Box, l layout) (*matches, error) {
	one := &matches{dims: len(r.a.Schema.Dims), maximum: r.a.o.MaxResult}
	tiles, err := r.a.shownTiles(ctx, i, b)
	if err != nil {
		return nil, err
	}
	whole := r.ahead.whole
	if whole == nil {
		whole = b
	}
	err = r.eachTile(ctx, r.a.Fragments[i], tiles, b, func(c *tileCells) error {
		r.a.dropShadowed(c, i, whole)
		if err := one.add(0, c); err != nil {
			return err
		}
		for _, row := range c.rows {
			to := 0
			for d := range b {
				to += int(c.coords[d*c.cells+row]-b[d].Lo) * l.stride[d]
			}
			one.place = append(one.place, to)
		}
		return nil
	})
	return one, err
}

func (r *Reader) scatterFixed(ctx context.Context, dst []byte, i, attr, size int, b Box, l layout) error {
	one, err := r.scatter(ctx, i, b, l)
	if err != nil {
		return err
	}
	a, f := &r.a.Schema.Attrs[attr], r.a.Fragments[i]
	open := func(int) error {
		_, err := r.open(ctx, 0, f, attr, false)
		return err
	}
	return one.needed(open, func(tile int64, next nextTiles, hits []int, place []int) error {
		n, err := r.fixedSize(f, tile, size)
		if err != nil {
			return err
		}
		src, err := r.decodeKept(ctx, tile, next, n, a.Pipeline, a.Type.elem(int(a.Values)))
		if err != nil {
			return err
		}
		for i, h := range hits {
			copy(dst[place[i]*size:(place[i]+1)*size], src[h*size:])
		}
		return nil
	}, func() error { return r.file[0].close() })
}

func (r *Reader) scatterVar(ctx context.Context, v *varCells, i, attr int, b Box, l layout) error {
	one, err := r.scatter(ctx, i, b, l)
	if err != nil {
		return err
	}
	f := r.a.Fragments[i]
	var sizes []uint64
	open := func(int) (err error) {
		sizes, err = r.openVar(ctx, f, attr)
		return err
	}
	return one.needed(open, func(tile int64, next nextTiles, hits []int, place []int) error {
		offs, data, err := r.varTile(ctx, f, attr, sizes, tile, next, hits[0], hits[len(hits)-1])
		if err != nil {
			return err
		}
		for i, h := range hits {
			if v.spans[place[i]], err = v.cell(offs, data, h, sizes[tile]); err != nil {
				return err
			}
		}
		return nil
	}, r.closeVar)
}
