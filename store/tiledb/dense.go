package tiledb

import (
	"context"

	"github.com/chaski-eo/chaski/fault"
)

// Shape returns the number of cells of a box along each dimension of a dense array, and of all of them.
// The result of reading it may be too large; then it is fault.Limit.
func (a *Array) Shape(b Box) (shape []int, cells int, err error) {
	if !a.Schema.Dense {
		return nil, 0, fault.New(fault.Unsupported, "sub-array", fault.NoOffset, "a sparse array has no shape")
	}
	if err := a.Schema.check(b); err != nil {
		return nil, 0, err
	}
	shape, n := b.shape(a.o.MaxResult)
	if n == 0 {
		return nil, 0, fault.New(fault.Limit, "sub-array", fault.NoOffset, "more than %d cells", a.o.MaxResult)
	}
	return shape, int(n), nil
}

// Dense reads the cells of a box of a dense array in row-major order, whatever the orders of the array:
// of one attribute all values. Cells that were never written have the fill value of the type: the lowest
// value of a signed type or a datetime, the highest of an unsigned one, NaN, 0x80 for char, 0 for
// text; a var-length cell then holds one of it.
func (r *Reader) Dense(ctx context.Context, attr int, b Box) (Values, error) {
	_, cells, err := r.a.Shape(b)
	if err != nil {
		return Values{}, err
	}
	at := &r.a.Schema.Attrs[attr]
	size := at.CellSize()
	if at.Var() {
		size = 24 // what is noted of a cell, besides its values
	}
	if int64(cells) > r.a.o.MaxResult/int64(size) {
		return Values{}, fault.New(fault.Limit, "sub-array", fault.NoOffset, "%d cells of %d bytes, at most %d bytes", cells, size, r.a.o.MaxResult)
	}
	if at.Var() {
		return r.denseVar(ctx, attr, b, cells)
	}
	v := Values{Data: make([]byte, cells*size)}
	return v, r.DenseInto(ctx, v.Data, attr, b, nil)
}

// DenseInto is Dense for an attribute of fixed length, into dst, whose length must be the number of cells
// times Attr.CellSize. The cells are in row-major order of the dimensions that axes lists, the slowest first; nil
// stands for the array's own order.
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
		panic("tiledb: dst has not the size of the cells")
	}
	if err := r.ahead.about(ctx, r.a, attr, b); err != nil {
		return err
	}
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

// start returns the first fragment that shows in a box that is read, and whether the fragments cover it: what lies
// below a dense fragment that covers all of it does not show.
func (a *Array) start(b Box) (from int, covered bool) {
	for i := len(a.Fragments) - 1; i >= 0; i-- {
		if f := a.Fragments[i]; f.Dense && f.NonEmpty.covers(b) {
			return i, true
		}
	}
	return 0, false
}

// layout says where the cells of a box go.
type layout struct {
	axes   []int // dimensions, the slowest first
	stride []int // of each dimension, in cells
}

// strides returns the strides of each dimension in row-major order of axes.
func strides(shape, axes []int) []int {
	out := make([]int, len(shape))
	n := 1
	for k := len(axes) - 1; k >= 0; k-- {
		out[axes[k]] = n
		n *= shape[axes[k]]
	}
	return out
}

// denseFixed copies what dense fragment i holds of a box.
func (r *Reader) denseFixed(ctx context.Context, dst []byte, i, attr, size int, b Box, to layout) error {
	a, f := &r.a.Schema.Attrs[attr], r.a.Fragments[i]
	t, err := r.open(ctx, 0, f, attr, false)
	if err != nil {
		return err
	}
	defer t.close()
	n := uint64(r.a.Schema.tileCells) * uint64(size)
	elem := a.Type.elem(int(a.Values))
	return r.ahead.tiles(ctx, r.a, i, b, to, func(tile int64, next following, p *copyPlan) error {
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

// denseVar is Dense for a var-length attribute.
func (r *Reader) denseVar(ctx context.Context, attr int, b Box, cells int) (Values, error) {
	a := &r.a.Schema.Attrs[attr]
	shape, _ := b.shape(r.a.o.MaxResult)
	to := layout{axes: r.a.axes, stride: strides(shape, r.a.axes)}
	fill := a.Type.fill()
	v := &varCells{spans: make([]span, cells), arena: fill, limit: r.a.o.MaxResult}
	for i := range v.spans {
		v.spans[i].n = len(fill)
	}
	if err := r.ahead.about(ctx, r.a, attr, b); err != nil {
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
	return r.ahead.tiles(ctx, r.a, i, b, to, func(tile int64, next following, p *copyPlan) error {
		offs, data, err := r.varTile(ctx, f, attr, sizes, tile, next, p.first, p.last)
		if err != nil {
			return err
		}
		return p.each(func(to, from, n, stride int) error {
			if stride == 1 { // all their bytes at once
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

// tiles calls do for every tile of dense fragment i that shows in a box, in the order in which they lie in
// files; next are those that are needed too. The plan is valid during the call.
func (h *ahead) tiles(ctx context.Context, a *Array, i int, b Box, to layout, do func(tile int64, next following, p *copyPlan) error) error {
	w := newDenseWalk(a, i, b, to)
	for more := true; more; more = w.next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		tile := w.place()
		if w.hidden() {
			continue
		}
		next := following{last: tile}
		if len(w.later) == 0 {
			next.last = tile + w.hi[w.fast] - w.cur[w.fast]
		}
		if err := do(tile, h.after(w.f, tile, next), &w.plan); err != nil {
			return err
		}
	}
	return nil
}

// denseWalk goes through the tiles of a dense fragment that a box meets, in tile order.
type denseWalk struct {
	s      *Schema
	f      *Fragment
	query  Box
	axes   []int // dimensions in the order of the plan
	cut    Box   // of the query, the part that the fragment holds
	order  []int // dimensions, the one that changes fastest last
	fast   int
	lo, hi []int64 // tiles of the fragment along each dimension
	cur    []int64
	stride []int64 // from tile to tile
	region Box     // of the current tile, the part in cut
	later  []*Fragment
	plan   copyPlan
}

func newDenseWalk(a *Array, i int, b Box, to layout) *denseWalk {
	s, f := a.Schema, a.Fragments[i]
	dims := len(s.Dims)
	nums, ints := make([]int64, 4*dims), make([]int, 4*dims)
	w := &denseWalk{s: s, f: f, query: b, axes: to.axes, cut: b.cut(f.NonEmpty), region: make(Box, dims),
		lo: nums[:dims], hi: nums[dims : 2*dims], cur: nums[2*dims : 3*dims], stride: nums[3*dims:], order: ints[:dims],
		plan: copyPlan{n: ints[dims : 2*dims], src: ints[2*dims : 3*dims], dst: ints[3*dims:]}}
	for d := range dims {
		dim := &s.Dims[d]
		w.lo[d] = int64(uint64(w.cut[d].Lo-dim.Domain.Lo)/dim.Extent) - f.first[d]
		w.hi[d] = int64(uint64(w.cut[d].Hi-dim.Domain.Lo)/dim.Extent) - f.first[d]
		w.order[d] = d
		if s.TileOrder == ColMajor {
			w.order[d] = dims - 1 - d
		}
	}
	copy(w.cur, w.lo)
	w.fast = w.order[dims-1]
	tile := int64(1)
	for k := dims - 1; k >= 0; k-- {
		w.stride[w.order[k]] = tile
		tile *= f.grid[w.order[k]]
	}
	cells, in := 1, make([]int, dims) // strides in a tile
	for k := dims - 1; k >= 0; k-- {
		d := k
		if s.CellOrder == ColMajor {
			d = dims - 1 - k
		}
		in[d] = cells
		cells *= int(s.Dims[d].Extent)
	}
	for k, d := range w.axes {
		w.plan.src[k], w.plan.dst[k] = in[d], to.stride[d]
	}
	for _, g := range a.Fragments[i+1:] {
		if g.Dense && g.NonEmpty.intersects(w.cut) {
			w.later = append(w.later, g)
		}
	}
	return w
}

// next goes on to the next tile; false after the last one.
func (w *denseWalk) next() bool {
	for k := len(w.order) - 1; k >= 0; k-- {
		d := w.order[k]
		if w.cur[d]++; w.cur[d] <= w.hi[d] {
			return true
		}
		w.cur[d] = w.lo[d]
	}
	return false
}

// place plans the current tile and returns its number.
func (w *denseWalk) place() (tile int64) {
	p := &w.plan
	p.from, p.to, p.last = 0, 0, 0
	for k, d := range w.axes {
		dim := &w.s.Dims[d]
		tile += w.cur[d] * w.stride[d]
		begin := dim.Domain.Lo + Coord(uint64(w.f.first[d]+w.cur[d])*dim.Extent)
		end := begin + Coord(dim.Extent-1)
		lo, hi := max(begin, w.cut[d].Lo), min(end, w.cut[d].Hi)
		w.region[d] = Interval{lo, hi}
		p.n[k] = int(hi-lo) + 1
		p.from += int(lo-begin) * p.src[k]
		p.last += int(hi-begin) * p.src[k]
		p.to += int(lo-w.query[d].Lo) * p.dst[k]
	}
	p.first = p.from
	return tile
}

// hidden reports whether a later fragment covers all that the tile would give.
func (w *denseWalk) hidden() bool {
	for _, f := range w.later {
		if f.NonEmpty.covers(w.region) {
			return true
		}
	}
	return false
}
