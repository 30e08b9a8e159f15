package tiledb

import (
	"iter"
	"slices"
)

// layout is the place of each cell of a box in the result.
type layout struct {
	axes   []int // dimensions, the slowest one first
	stride []int // of each dimension, in cells
}

// strides returns the stride of each dimension in the row-major order of axes.
func strides(shape, axes []int) []int {
	out := make([]int, len(shape))
	cells := 1
	for k := len(axes) - 1; k >= 0; k-- {
		out[axes[k]] = cells
		cells *= shape[axes[k]]
	}
	return out
}

// denseWalk iterates over the tiles of a dense fragment that intersect a box, in their order in the file.
type denseWalk struct {
	s      *Schema
	f      *Fragment
	query  Box
	axes   []int   // dimensions in the order of plan
	cut    Box     // the part of the query that the fragment holds
	order  []int   // dimensions, the fastest one last
	lo, hi []int64 // first and last tile along each dimension
	cur    []int64
	stride []int64 // from one tile to the next along each dimension
	region Box     // the part of cut in the current tile
	later  []*Fragment
	plan   copyPlan
}

func newDenseWalk(a *Array, i int, b Box, to layout) *denseWalk {
	schema, fragment := a.Schema, a.Fragments[i]
	dims := len(schema.Dims)
	nums, ints := make([]int64, 4*dims), make([]int, 4*dims)
	walk := &denseWalk{s: schema, f: fragment, query: b, axes: to.axes, cut: b.cut(fragment.NonEmpty), region: make(Box,
		dims),
		lo: nums[:dims], hi: nums[dims : 2*dims], cur: nums[2*dims : 3*dims], stride: nums[3*dims:], order: ints[:dims],
		plan: copyPlan{n: ints[dims : 2*dims], src: ints[2*dims : 3*dims], dst: ints[3*dims:]}}
	for d := range dims {
		dim := &schema.Dims[d]
		walk.lo[d] = int64(uint64(walk.cut[d].Lo-dim.Domain.Lo)/dim.Extent) - fragment.first[d]
		walk.hi[d] = int64(uint64(walk.cut[d].Hi-dim.Domain.Lo)/dim.Extent) - fragment.first[d]
		walk.order[d] = d
		if schema.TileOrder == ColMajor {
			walk.order[d] = dims - 1 - d
		}
	}
	copy(walk.cur, walk.lo)
	step := int64(1)
	for k := dims - 1; k >= 0; k-- {
		walk.stride[walk.order[k]] = step
		step *= fragment.grid[walk.order[k]]
	}
	cells, inside := 1, make([]int, dims) // strides inside a tile
	for k := dims - 1; k >= 0; k-- {
		d := k
		if schema.CellOrder == ColMajor {
			d = dims - 1 - k
		}
		inside[d] = cells
		cells *= int(schema.Dims[d].Extent)
	}
	for k, d := range walk.axes {
		walk.plan.src[k], walk.plan.dst[k] = inside[d], to.stride[d]
	}
	// Only later fragments count, because cells of earlier ones are overwritten anyway.
	for _, later := range a.Fragments[i+1:] {
		if later.Dense && later.NonEmpty.intersects(walk.cut) {
			walk.later = append(walk.later, later)
		}
	}
	return walk
}

// tiles places the walk at each tile that shows, and yields its index. A tile does not show if one later
// fragment covers all cells that it would contribute.
func (w *denseWalk) tiles() iter.Seq[int64] {
	hides := func(f *Fragment) bool { return f.NonEmpty.covers(w.region) }
	return func(yield func(tile int64) bool) {
		for goesOn := true; goesOn; goesOn = w.next() {
			if tile := w.place(); !slices.ContainsFunc(w.later, hides) && !yield(tile) {
				return
			}
		}
	}
}

// next moves to the next tile, or returns false after the last one.
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

// place computes the copy plan of the current tile and returns the tile's index.
func (w *denseWalk) place() (tile int64) {
	plan := &w.plan
	plan.from, plan.to, plan.last = 0, 0, 0
	for k, d := range w.axes {
		dim := &w.s.Dims[d]
		tile += w.cur[d] * w.stride[d]
		begin := dim.Domain.Lo + Coord(uint64(w.f.first[d]+w.cur[d])*dim.Extent)
		end := begin + Coord(dim.Extent-1)
		lo, hi := max(begin, w.cut[d].Lo), min(end, w.cut[d].Hi)
		w.region[d] = Interval{lo, hi}
		plan.n[k] = int(hi-lo) + 1
		plan.from += int(lo-begin) * plan.src[k]
		plan.last += int(hi-begin) * plan.src[k]
		plan.to += int(lo-w.query[d].Lo) * plan.dst[k]
	}
	plan.first = plan.from
	return tile
}

// copyPlan describes how to copy a box of cells from a tile to a result in row-major order of some
// dimensions. Strides and offsets are in cells.
type copyPlan struct {
	// per dimension of the result, the last one with stride 1: cells, stride in the tile, stride in the result
	n, src, dst []int
	from, to    int // offset of the first cell in the tile and in the result
	first, last int // first and last cell of the box in the tile
}

// each calls f for every run of n cells along the last dimension. A run begins at cell src of the tile, where its cells
// are stride cells apart, and goes to cell dst of the result. Runs that are contiguous on both sides are joined.
func (p *copyPlan) each(f func(dst, src, n, stride int) error) error {
	d := len(p.n) - 1
	n, stride := p.n[d], p.src[d]
	// Contiguous runs are joined, because a few long copies are faster than many short ones.
	for d > 0 && p.src[d-1] == n*stride && p.dst[d-1] == n {
		d--
		n *= p.n[d]
	}
	return p.walk(0, d, p.from, p.to, n, stride, f)
}

func (p *copyPlan) walk(d, end, src, dst, n, stride int, f func(dst, src, n, stride int) error) error {
	if d == end {
		return f(dst, src, n, stride)
	}
	for range p.n[d] {
		if err := p.walk(d+1, end, src, dst, n, stride, f); err != nil {
			return err
		}
		src += p.src[d]
		dst += p.dst[d]
	}
	return nil
}
