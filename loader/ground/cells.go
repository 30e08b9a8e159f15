package ground

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/paulmach/orb"

	"github.com/chaski-eo/chaski/format/vector/rasterize"
)

// span is a run of cells of a row, x1 not included.
type span struct{ y, x0, x1 int32 }

// cells are spans that do not touch, sorted by row and column.
type cells []span

// joined sorts spans and joins those that touch.
func joined(list []span) cells {
	slices.SortFunc(list, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.y, b.y), cmp.Compare(a.x0, b.x0))
	})
	out := list[:0]
	for _, next := range list {
		if n := len(out); n > 0 && out[n-1].y == next.y && next.x0 <= out[n-1].x1 {
			out[n-1].x1 = max(out[n-1].x1, next.x1)
			continue
		}
		out = append(out, next)
	}
	return slices.Clip(out)
}

// has reports whether a cell lies in c.
func (c cells) has(y, x int32) bool {
	i := sort.Search(len(c), func(i int) bool { return c[i].y > y || c[i].y == y && c[i].x1 > x })
	return i < len(c) && c[i].y == y && c[i].x0 <= x
}

// both returns the cells that lie in c and in o.
func (c cells) both(o cells) (out cells) {
	for i, other := 0, 0; i < len(c) && other < len(o); {
		ours, theirs := c[i], o[other]
		if ours.y == theirs.y {
			if x0, x1 := max(ours.x0, theirs.x0), min(ours.x1, theirs.x1); x0 < x1 {
				out = append(out, span{ours.y, x0, x1})
			}
		}
		if ours.y < theirs.y || ours.y == theirs.y && ours.x1 < theirs.x1 {
			i++
		} else {
			other++
		}
	}
	return out
}

// shrunk returns the cells whose neighbours up to r rows and columns away all lie in c.
func (c cells) shrunk(r int32) cells {
	var narrow cells
	for _, line := range c {
		if line.x0+r < line.x1-r {
			narrow = append(narrow, span{line.y, line.x0 + r, line.x1 - r})
		}
	}
	// The rows of narrow, by where they begin.
	rows := map[int32]cells{}
	for start := 0; start < len(narrow); {
		end := start
		for end < len(narrow) && narrow[end].y == narrow[start].y {
			end++
		}
		rows[narrow[start].y] = narrow[start:end]
		start = end
	}
	row := func(list cells, y int32) cells {
		out := make(cells, len(list))
		for i, line := range list {
			out[i] = span{y, line.x0, line.x1}
		}
		return out
	}
	var out cells
	for start := 0; start < len(narrow); {
		y := narrow[start].y
		left := rows[y]
		start += len(left)
		for d := int32(1); d <= r && len(left) > 0; d++ {
			left = left.both(row(rows[y-d], y)).both(row(rows[y+d], y))
		}
		out = append(out, left...)
	}
	return out
}

// lattice is the grid of cells of a map.
type lattice struct {
	size    float64  // side of a cell, in units of the map
	touched bool     // a polygon has the cells that it touches; otherwise those whose centres lie in it
	only    *cellBox // nil: all cells
}

// cellBox is a range of rows and columns of cells; y1 and x1 are excluded.
type cellBox struct{ y0, x0, y1, x1 int }

// bound returns the box around cells.
func (c cells) bound() *cellBox {
	bound := &cellBox{math.MaxInt, math.MaxInt, math.MinInt, math.MinInt}
	for _, s := range c {
		bound.y0, bound.y1 = min(bound.y0, int(s.y)), max(bound.y1, int(s.y)+1)
		bound.x0, bound.x1 = min(bound.x0, int(s.x0)), max(bound.x1, int(s.x1))
	}
	return bound
}

// draw appends the spans of a polygon.
func (l *lattice) draw(list []span, p orb.Polygon) []span {
	bound := p.Bound()
	left, top := floor(bound.Min[0]/l.size)-1, floor(-bound.Max[1]/l.size)-1
	right, bottom := floor(bound.Max[0]/l.size)+2, floor(-bound.Min[1]/l.size)+2
	if only := l.only; only != nil {
		left, top, right, bottom = max(left, only.x0), max(top, only.y0), min(right, only.x1), min(bottom, only.y1)
	}
	if left >= right || top >= bottom {
		return list
	}
	grid := rasterize.Grid{
		Transform: [6]float64{float64(left) * l.size, l.size, 0, -float64(top) * l.size, 0, -l.size},
		Height:    bottom - top, Width: right - left, AllTouched: l.touched,
	}
	grid.Spans(p, func(y, start, end int) {
		list = append(list, span{int32(top + y), int32(left + start), int32(left + end)})
	})
	return list
}

// drawSmall appends the cells that a polygon touches if the polygon contains no cell centre at all, as a small field
// may. It would get no window otherwise.
func (l *lattice) drawSmall(list []span, p orb.Polygon) []span {
	whole, touched := *l, *l
	whole.only, touched.touched = nil, true
	if len(whole.draw(nil, p)) > 0 {
		return list
	}
	return touched.draw(list, p)
}
