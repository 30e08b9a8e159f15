package rasterize

import (
	"cmp"
	"math"
	"slices"

	"github.com/paulmach/orb"
)

// polygon fills rings by the even-odd rule.
func (d *drawer) polygon(rings orb.Polygon) {
	var crossings [][]orb.Point
	top, bottom := math.Inf(1), math.Inf(-1)
	for _, ring := range rings {
		places, ok := d.places(ring)
		if !ok {
			return // without one of its rings it would be another polygon
		}
		if n := len(places); n > 0 && places[0] != places[n-1] {
			places = append(places, places[0])
		}
		if !clockwise(ring) {
			slices.Reverse(places)
		}
		crossings = append(crossings, places)
		for _, p := range places {
			top, bottom = min(top, p[1]), max(bottom, p[1])
		}
	}
	if !(top <= bottom) {
		return
	}
	first, last := max(0, int(math.Floor(top))), min(d.Height-1, int(math.Floor(bottom)))
	if d.fill(edgesOf(crossings), first, last); !d.AllTouched {
		return
	}
	for _, r := range crossings {
		for i := 1; i < len(r); i++ {
			d.touch(r[i-1], r[i], true)
		}
	}
}

// edge is a side of a ring. It runs down, unless it is level.
type edge struct{ a, b orb.Point }

// edgesOf returns the sides of rings, those that begin higher first.
func edgesOf(rings [][]orb.Point) []edge {
	var list []edge
	for _, r := range rings {
		for i := 1; i < len(r); i++ {
			point, b := r[i-1], r[i]
			if point[1] > b[1] {
				point, b = b, point
			}
			list = append(list, edge{point, b})
		}
	}
	slices.SortFunc(list, func(p, q edge) int { return cmp.Compare(p.a[1], q.a[1]) })
	return list
}

// fill covers the pixels of rows whose centres lie in the polygon. A row looks at the edges that reach it only: an
// outline of 100,000 corners over 100,000 rows would take minutes otherwise.
func (d *drawer) fill(edges []edge, first, last int) {
	var reach []edge // those that begin above the row's middle and have not ended above it
	for y := first; y <= last; y++ {
		middle := float64(y) + 0.5
		for ; len(edges) > 0 && edges[0].a[1] <= middle; edges = edges[1:] {
			reach = append(reach, edges[0])
		}
		d.ends = d.ends[:0]
		left := reach[:0]
		for _, edge := range reach {
			point, b := edge.a, edge.b
			switch {
			case point[1] == b[1]:
				// An edge along the centres of the row counts if it runs to the left. In the direction that rings
				// have, that is a lower side on a map whose north is up.
				if point[1] == middle && point[0] > b[0] {
					d.span(y, int(math.Floor(b[0]+0.5)), int(math.Floor(point[0]+0.5)))
				}
			case middle < b[1]:
				left = append(left, edge)
				// In this order of operations, as in GDAL, so that the last bit is the same.
				d.ends = append(d.ends, float64(float64((middle-point[1])*(b[0]-point[0]))/(b[1]-point[1]))+point[0])
			}
		}
		reach = left
		slices.Sort(d.ends)
		for i := 1; i < len(d.ends); i += 2 {
			d.span(y, int(math.Floor(d.ends[i-1]+0.5)), int(math.Floor(d.ends[i]+0.5)))
		}
	}
}

// clockwise reports whether a ring turns to the right on the ground, by its corner at the lowest
// point, the rightmost of several, as GDAL has it: rings that cross themselves turn both ways.
func clockwise(r orb.Ring) bool {
	n := len(r)
	if n > 1 && r[0] == r[n-1] {
		n--
	}
	if n < 3 {
		return false
	}
	low := 0
	for i, p := range r[:n] {
		if p[1] < r[low][1] || p[1] == r[low][1] && p[0] > r[low][0] {
			low = i
		}
	}
	first := r[low]
	turn := func(step int) (dx, dy float64) { // to the next other point
		for i := 1; i < n; i++ {
			if p := r[(low+step*i+i*n)%n]; p != first {
				return p[0] - first[0], p[1] - first[1]
			}
		}
		return 0, 0
	}
	bx, factor := turn(-1)
	ax, ay := turn(1)
	if cross := float64(ax*factor) - float64(ay*bx); cross != 0 {
		return cross < 0
	}
	area := 0.0
	for i := range n {
		a, b := r[i], r[(i+1)%n]
		area += float64((a[0]-r[0][0])*(b[1]-r[0][1])) - float64((b[0]-r[0][0])*(a[1]-r[0][1]))
	}
	return area < 0
}
