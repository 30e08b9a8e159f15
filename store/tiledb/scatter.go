package tiledb

import "context"

// scatter finds the cells of sparse fragment i of a dense array that show in a box, and their
// places in the result.
func (r *Reader) scatter(ctx context.Context, i int, b Box, l layout) (*matches, error) {
	hits := &matches{dims: len(r.a.Schema.Dims), maximum: r.a.o.MaxResult}
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
		if err := hits.add(0, c); err != nil {
			return err
		}
		for _, row := range c.rows {
			end := 0
			for d := range b {
				end += int(c.coords[d*c.cells+row]-b[d].Lo) * l.stride[d]
			}
			hits.place = append(hits.place, end)
		}
		return nil
	})
	return hits, err
}

func (r *Reader) scatterFixed(ctx context.Context, dst []byte, i int, p part, b Box, l layout) error {
	found, err := r.scatter(ctx, i, b, l)
	if err != nil {
		return err
	}
	fragment, size := r.a.Fragments[i], p.size
	if !fragment.has(p.attr) {
		for _, pos := range found.place {
			fillCells(dst[pos*size:(pos+1)*size], p.fill)
		}
		return nil
	}
	w := p.which()
	open := func(int) error {
		_, err := r.open(ctx, w, fragment, p.attr, p.kind)
		return err
	}
	codec := p.codec(r.a, fragment)
	return found.needed(open, func(tile int64, next nextTiles, hits []int, place []int) error {
		n, err := r.fixedSize(w, fragment, tile, size)
		if err != nil {
			return err
		}
		src, err := r.decodeKept(ctx, w, tile, next, n, codec.p, codec.e)
		if err != nil {
			return err
		}
		for i, h := range hits {
			copy(dst[place[i]*size:(place[i]+1)*size], src[h*size:])
		}
		return nil
	}, func() error { return r.file[w].close() })
}

func (r *Reader) scatterVar(ctx context.Context, v *varCells, i, attr int, b Box, l layout) error {
	found, err := r.scatter(ctx, i, b, l)
	if err != nil {
		return err
	}
	fragment := r.a.Fragments[i]
	if !fragment.has(attr) {
		for _, pos := range found.place {
			v.spans[pos] = span{0, len(r.a.Schema.Attrs[attr].fill())}
		}
		return nil
	}
	var sizes []uint64
	open := func(int) (err error) {
		sizes, err = r.openVar(ctx, 0, fragment, attr)
		return err
	}
	return found.needed(open, func(tile int64, next nextTiles, hits []int, place []int) error {
		offs, data, err := r.varTile(ctx, 0, fragment, attr, sizes, tile, next, hits[0], hits[len(hits)-1])
		if err != nil {
			return err
		}
		for i, h := range hits {
			if v.spans[place[i]], err = v.cell(offs, data, h, sizes[tile]); err != nil {
				return err
			}
		}
		return nil
	}, func() error { return r.closeVar(0) })
}
