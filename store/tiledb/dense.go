package tiledb

import (
	"context"

	"github.com/chaski-eo/chaski/fault"
)

// Dense reads all values of one attribute in a box of a dense array, in row-major order whatever
// the orders of the array. Cells that were never written have the fill value of the type: the
// lowest value of a signed type or a datetime, the highest of an unsigned one, NaN, 0x80 for char,
// and 0 for strings. A cell of variable length then holds one fill value.
func (r *Reader) Dense(ctx context.Context, attr int, b Box) (Values, error) {
	_, cells, err := r.a.Shape(b)
	if err != nil {
		return Values{}, err
	}
	at := &r.a.Schema.Attrs[attr]
	size := at.CellSize()
	if at.Var() {
		size = 24 // bytes of bookkeeping for each cell: a span and an offset
	}
	if int64(cells) > r.a.o.MaxResult/int64(size) {
		return Values{}, fault.New(fault.Limit, "sub-array", fault.NoOffset,
			"%d cells of %d bytes, at most %d bytes", cells, size, r.a.o.MaxResult)
	}
	if at.Var() {
		return r.denseVar(ctx, attr, b, cells)
	}
	v := Values{Data: make([]byte, cells*size)}
	return v, r.DenseInto(ctx, v.Data, attr, b, nil)
}

// DenseInto is Dense for an attribute of fixed length, into dst, whose length must be the number of
// cells times Attr.CellSize. The cells are in row-major order of the dimensions in axes, the
// slowest first; nil means the array's own order.
func (r *Reader) DenseInto(ctx context.Context, dst []byte, attr int, b Box, axes []int) error {
	shape, cells, err := r.a.Shape(b)
	if err != nil {
		return err
	}
	if axes == nil {
		axes = r.a.axes
	}
	to := layout{axes: axes, stride: strides(shape, axes)}
	at := &r.a.Schema.Attrs[attr]
	size := at.CellSize()
	if at.Var() || len(dst)/size != cells || len(dst)%size != 0 {
		panic("tiledb: the length of dst is not the size of the cells")
	}
	if err := r.ahead.expectOne(ctx, r.a, attr, b); err != nil {
		return err
	}
	// Filling is skipped if fragments cover the box, because every byte would be overwritten.
	if _, covered := r.a.start(b); !covered {
		fillCells(dst, at.Type.fill())
	}
	return r.a.layers(b, r.ahead.whole, func(i int) error {
		if r.a.Fragments[i].Dense {
			return r.denseFixed(ctx, dst, i, attr, size, b, to)
		}
		return r.scatterFixed(ctx, dst, i, attr, size, b, to)
	})
}

// denseFixed copies the cells that dense fragment i holds of a box.
func (r *Reader) denseFixed(ctx context.Context, dst []byte, i, attr, size int, b Box, to layout) error {
	a, f := &r.a.Schema.Attrs[attr], r.a.Fragments[i]
	t, err := r.open(ctx, 0, f, attr, false)
	if err != nil {
		return err
	}
	defer t.close()
	n := uint64(r.a.Schema.tileCells) * uint64(size)
	elem := a.Type.elem(int(a.Values))
	return r.ahead.tiles(ctx, r.a, i, b, to, func(tile int64, next nextTiles, p *copyPlan) error {
		src, err := r.decode(ctx, 0, tile, next, n, a.Pipeline, elem, p.first*size, (p.last+1)*size)
		if err != nil {
			return err
		}
		return p.each(func(to, from, n, stride int) error {
			if stride == 1 {
				copy(dst[to*size:(to+n)*size], src[from*size:])
			} else {
				gather(dst[to*size:(to+n)*size], src[from*size:], n, stride*size, size)
			}
			return nil
		})
	})
}

// denseVar is Dense for an attribute of variable length.
func (r *Reader) denseVar(ctx context.Context, attr int, b Box, cells int) (Values, error) {
	a := &r.a.Schema.Attrs[attr]
	shape, _ := b.shape(r.a.o.MaxResult)
	to := layout{axes: r.a.axes, stride: strides(shape, r.a.axes)}
	fill := a.Type.fill()
	// All cells that were never written share one fill value in the arena, since there may be many
	// of them.
	v := &varCells{spans: make([]span, cells), arena: fill, limit: r.a.o.MaxResult}
	for i := range v.spans {
		v.spans[i].n = len(fill)
	}
	if err := r.ahead.expectOne(ctx, r.a, attr, b); err != nil {
		return Values{}, err
	}
	err := r.a.layers(b, r.ahead.whole, func(i int) error {
		if r.a.Fragments[i].Dense {
			return r.denseVarFragment(ctx, v, i, attr, b, to)
		}
		return r.scatterVar(ctx, v, i, attr, b, to)
	})
	if err != nil {
		return Values{}, err
	}
	return v.values(r.a.o.MaxResult)
}

func (r *Reader) denseVarFragment(ctx context.Context, v *varCells, i, attr int, b Box, to layout) error {
	f := r.a.Fragments[i]
	sizes, err := r.openVar(ctx, f, attr)
	if err != nil {
		return err
	}
	defer r.closeVar()
	return r.ahead.tiles(ctx, r.a, i, b, to, func(tile int64, next nextTiles, p *copyPlan) error {
		offs, data, err := r.varTile(ctx, f, attr, sizes, tile, next, p.first, p.last)
		if err != nil {
			return err
		}
		return p.each(func(to, from, n, stride int) error {
			if stride == 1 { // one copy for the whole run
				base := u64(offs, from)
				at, err := v.add(data, base, cellEnd(offs, from+n-1, sizes[tile]))
				if err != nil {
					return err
				}
				for k := range n {
					o := u64(offs, from+k)
					v.spans[to+k] = span{at + int(o-base), int(cellEnd(offs, from+k, sizes[tile]) - o)}
				}
				return nil
			}
			for k := range n {
				o, end := u64(offs, from+k*stride), cellEnd(offs, from+k*stride, sizes[tile])
				at, err := v.add(data, o, end)
				if err != nil {
					return err
				}
				v.spans[to+k] = span{at, int(end - o)}
			}
			return nil
		})
	})
}

// tiles calls do for every tile of dense fragment i that shows in a box, in the order of the file.
// next are the tiles that are needed afterwards. The plan is valid during the call.
func (h *readAhead) tiles(ctx context.Context, a *Array, i int, b Box, to layout,
	do func(tile int64, next nextTiles, p *copyPlan) error) error {
	w := newDenseWalk(a, i, b, to)
	for more := true; more; more = w.next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		tile := w.place()
		if w.hidden() {
			continue
		}
		next := nextTiles{last: tile}
		if len(w.later) == 0 {
			next.last = tile + w.hi[w.fast] - w.cur[w.fast]
		}
		if err := do(tile, h.after(w.f, tile, next), &w.plan); err != nil {
			return err
		}
	}
	return nil
}
