package tiledb

import (
	"context"
	"slices"

	"github.com/chaski-eo/chaski/fault"
)

// part is the part of an attribute to read: its values, or whether cells have one (nullOffsets).
type part struct {
	attr int
	kind list
	size int    // bytes of a cell
	fill []byte // of cells that were never written
}

// values is the part of an attribute with the values of its cells.
func (a *Attr) values(attr int) part { return part{attr, tileOffsets, a.CellSize(), a.fill()} }

// validity is the part of an attribute that says which cells have a value: one byte each, 0 or 1.
func (a *Attr) validity(attr int) part {
	fill := []byte{0}
	if a.FillValid {
		fill[0] = 1
	}
	return part{attr, nullOffsets, 1, fill}
}

// which returns the file of a reader that has the part: they differ, so that images that share a tile
// decode it once.
func (p *part) which() int {
	if p.kind == nullOffsets {
		return 1
	}
	return 0
}

// codec returns how a part is stored in a fragment.
func (p *part) codec(a *Array, f *Fragment) codec {
	if p.kind == nullOffsets {
		return codec{t: Uint8, p: f.schema.Validity, e: Uint8.elem(1)}
	}
	return f.codec(a, p.attr)
}

// Dense reads all values of one attribute in a box of a dense array, in row-major order, independent
// of the orders of the array. Cells that were never written have the fill value of the attribute, or
// in formats without one of the type: the lowest value of a signed type or a datetime, the highest of
// an unsigned one, NaN, 0x80 for char, and 0 for strings. A cell of variable length then holds one
// fill value.
func (r *Reader) Dense(ctx context.Context, attr int, b Box) (Values, error) {
	_, cells, err := r.a.Shape(b)
	if err != nil {
		return Values{}, err
	}
	attribute := &r.a.Schema.Attrs[attr]
	size := attribute.CellSize()
	if attribute.Var() {
		size = 24 // bytes of bookkeeping for each cell: a span and an offset
	}
	if int64(cells) > r.a.o.MaxResult/int64(size) {
		return Values{}, fault.New(fault.Limit, "sub-array", fault.NoOffset,
			"%d cells of %d bytes, at most %d bytes", cells, size, r.a.o.MaxResult)
	}
	var v Values
	if attribute.Var() {
		v, err = r.denseVar(ctx, attr, b, cells)
	} else {
		v.Data = make([]byte, cells*size)
		err = r.densePart(ctx, v.Data, attribute.values(attr), b, r.a.axes)
	}
	if err == nil && attribute.Nullable {
		v.Valid = make([]byte, cells)
		err = r.densePart(ctx, v.Valid, attribute.validity(attr), b, r.a.axes)
	}
	return v, err
}

// DenseInto is Dense for an attribute of fixed length, into dst, whose length must be the number of
// cells times Attr.CellSize. The cells are in row-major order of the dimensions in axes, the
// slowest first; nil means the array's own order. Cells without a value have the fill value.
func (r *Reader) DenseInto(ctx context.Context, dst []byte, attr int, b Box, axes []int) error {
	if axes == nil {
		axes = r.a.axes
	}
	attribute := &r.a.Schema.Attrs[attr]
	if attribute.Var() {
		panic("tiledb: DenseInto of an attribute of variable length")
	}
	if err := r.densePart(ctx, dst, attribute.values(attr), b, axes); err != nil || !attribute.Nullable {
		return err
	}
	size := attribute.CellSize()
	r.valid = slices.Grow(r.valid[:0], len(dst)/size)[:len(dst)/size]
	if err := r.densePart(ctx, r.valid, attribute.validity(attr), b, axes); err != nil {
		return err
	}
	fill := attribute.fill()
	for i, v := range r.valid {
		if v == 0 {
			fillCells(dst[i*size:(i+1)*size], fill)
		}
	}
	return nil
}

// densePart fills dst with a part of an attribute.
func (r *Reader) densePart(ctx context.Context, dst []byte, p part, b Box, axes []int) error {
	shape, cells, err := r.a.Shape(b)
	if err != nil {
		return err
	}
	target := layout{axes: axes, stride: strides(shape, axes)}
	if len(dst)/p.size != cells || len(dst)%p.size != 0 {
		panic("tiledb: the length of dst is not the size of the cells")
	}
	if err := r.ahead.expectOne(ctx, r.a, p.attr, b); err != nil {
		return err
	}
	// Filling is skipped if fragments cover the box, because every byte would be overwritten.
	if _, covered := r.a.start(b); !covered {
		fillCells(dst, p.fill)
	}
	return r.a.layers(b, r.ahead.whole, func(i int) error {
		if r.a.Fragments[i].Dense {
			return r.denseFixed(ctx, dst, i, p, b, target)
		}
		return r.scatterFixed(ctx, dst, i, p, b, target)
	})
}

// denseFixed copies the cells that dense fragment i holds of a box.
func (r *Reader) denseFixed(ctx context.Context, dst []byte, i int, p part, b Box, to layout) error {
	fragment, size := r.a.Fragments[i], p.size
	if !fragment.has(p.attr) {
		return r.ahead.tiles(ctx, r.a, i, b, to, func(_ int64, _ nextTiles, c *copyPlan) error {
			return c.each(func(end, _, n, _ int) error {
				fillCells(dst[end*size:(end+n)*size], p.fill)
				return nil
			})
		})
	}
	w := p.which()
	file, err := r.open(ctx, w, fragment, p.attr, p.kind)
	if err != nil {
		return err
	}
	defer file.close()
	n, c := uint64(r.a.Schema.tileCells)*uint64(size), p.codec(r.a, fragment)
	return r.ahead.tiles(ctx, r.a, i, b, to, func(tile int64, next nextTiles, p *copyPlan) error {
		src, err := r.decode(ctx, w, tile, next, n, c.p, c.e, p.first*size, (p.last+1)*size)
		if err != nil {
			return err
		}
		return p.each(func(end, start, n, stride int) error {
			if stride == 1 {
				copy(dst[end*size:(end+n)*size], src[start*size:])
			} else {
				gather(dst[end*size:(end+n)*size], src[start*size:], n, stride*size, size)
			}
			return nil
		})
	})
}

// denseVar is Dense for an attribute of variable length.
func (r *Reader) denseVar(ctx context.Context, attr int, b Box, cells int) (Values, error) {
	a := &r.a.Schema.Attrs[attr]
	shape, _ := b.shape(r.a.o.MaxResult)
	target := layout{axes: r.a.axes, stride: strides(shape, r.a.axes)}
	fill := a.fill()
	// All cells that were never written share one fill value in the arena, since there may be many
	// of them.
	v := &varCells{spans: make([]span, cells), arena: slices.Clone(fill), limit: r.a.o.MaxResult}
	for i := range v.spans {
		v.spans[i].n = len(fill)
	}
	if err := r.ahead.expectOne(ctx, r.a, attr, b); err != nil {
		return Values{}, err
	}
	err := r.a.layers(b, r.ahead.whole, func(i int) error {
		if r.a.Fragments[i].Dense {
			return r.denseVarFragment(ctx, v, i, attr, b, target)
		}
		return r.scatterVar(ctx, v, i, attr, b, target)
	})
	if err != nil {
		return Values{}, err
	}
	return v.values(r.a.o.MaxResult)
}

func (r *Reader) denseVarFragment(ctx context.Context, v *varCells, i, attr int, b Box, to layout) error {
	fragment := r.a.Fragments[i]
	if !fragment.has(attr) {
		return r.ahead.tiles(ctx, r.a, i, b, to, func(_ int64, _ nextTiles, c *copyPlan) error {
			return c.each(func(end, _, n, _ int) error {
				for k := range n {
					v.spans[end+k] = span{0, len(r.a.Schema.Attrs[attr].fill())}
				}
				return nil
			})
		})
	}
	sizes, err := r.openVar(ctx, 0, fragment, attr)
	if err != nil {
		return err
	}
	defer r.closeVar(0)
	return r.ahead.tiles(ctx, r.a, i, b, to, func(tile int64, next nextTiles, p *copyPlan) error {
		offs, data, err := r.varTile(ctx, 0, fragment, attr, sizes, tile, next, p.first, p.last)
		if err != nil {
			return err
		}
		return p.each(func(end, start, n, stride int) error {
			return v.run(offs, data, sizes[tile], end, start, n, stride)
		})
	})
}

// run adds n cells of a tile, stride cells apart, as cells to and following.
func (v *varCells) run(offs, data []byte, size uint64, to, from, n, stride int) error {
	if stride == 1 { // one copy for the whole run
		base := u64(offs, from)
		pos, err := v.add(data, base, cellEnd(offs, from+n-1, size))
		if err != nil {
			return err
		}
		for k := range n {
			o := u64(offs, from+k)
			v.spans[to+k] = span{pos + int(o-base), int(cellEnd(offs, from+k, size) - o)}
		}
		return nil
	}
	for k := range n {
		o, end := u64(offs, from+k*stride), cellEnd(offs, from+k*stride, size)
		pos, err := v.add(data, o, end)
		if err != nil {
			return err
		}
		v.spans[to+k] = span{pos, int(end - o)}
	}
	return nil
}

// tiles calls do for every tile of dense fragment i that shows in a box, in the order of the file.
// next are the tiles that are needed afterwards. The plan is valid during the call.
func (h *readAhead) tiles(ctx context.Context, a *Array, i int, b Box, to layout,
	do func(tile int64, next nextTiles, p *copyPlan) error) error {
	denseWalk := newDenseWalk(a, i, b, to)
	for goesOn := true; goesOn; goesOn = denseWalk.next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		tile := denseWalk.place()
		if denseWalk.hidden() {
			continue
		}
		next := nextTiles{last: tile}
		if len(denseWalk.later) == 0 {
			next.last = tile + denseWalk.hi[denseWalk.fast] - denseWalk.cur[denseWalk.fast]
		}
		if err := do(tile, h.after(denseWalk.f, tile, next), &denseWalk.plan); err != nil {
			return err
		}
	}
	return nil
}
