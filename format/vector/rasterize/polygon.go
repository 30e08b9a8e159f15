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
			// The polygon is left out: without one of its rings it would be another one.
			return
		}
		if count := len(places); count > 0 && places[0] != places[count-1] {
			places = append(places, places[0])
		}
		if !clockwise(ring) {
			slices.Reverse(places)
		}
		crossings = append(crossings, places)
		for _, place := range places {
			top, bottom = min(top, place[1]), max(bottom, place[1])
		}
	}
	if !(top <= bottom) {
		return
	}
	first, last := max(0, int(math.Floor(top))), min(d.Height-1, int(math.Floor(bottom)))
	if d.fill(edgesOf(crossings), first, last); !d.AllTouched {
		return
	}
	for _, ring := range crossings {
		for i := 1; i < len(ring); i++ {
			d.touch(ring[i-1], ring[i], true)
		}
	}
}

// ringEdge is a side of a ring. It runs down, unless it is level.
type ringEdge struct{ a, b orb.Point }

// edgesOf returns the sides of rings, those that begin higher first.
func edgesOf(rings [][]orb.Point) []ringEdge {
	var list []ringEdge
	for _, ring := range rings {
		for i := 1; i < len(ring); i++ {
			point, next := ring[i-1], ring[i]
			if point[1] > next[1] {
				point, next = next, point
			}
			list = append(list, ringEdge{point, next})
		}
	}
	slices.SortFunc(list, func(p, q ringEdge) int { return cmp.Compare(p.a[1], q.a[1]) })
	return list
}

// fill covers the pixels of rows whose centres lie in the polygon. A row looks at the edges that reach it only: an
// outline of 100,000 corners over 100,000 rows would take minutes otherwise.
func (d *drawer) fill(edges []ringEdge, first, last int) {
	var reach []ringEdge // those that begin above the row's middle and have not ended above it
	for y := first; y <= last; y++ {
		middle := float64(y) + 0.5
		for ; len(edges) > 0 && edges[0].a[1] <= middle; edges = edges[1:] {
			reach = append(reach, edges[0])
		}
		d.ends = d.ends[:0]
		left := reach[:0]
		for _, edge := range reach {
			upper, lower := edge.a, edge.b
			switch {
			case upper[1] == lower[1]:
				// An edge along the centres of the row counts if it runs to the left. In the direction that rings
				// have, that is a lower side on a map whose north is up.
				if upper[1] == middle && upper[0] > lower[0] {
					d.span(y, int(math.Floor(lower[0]+0.5)), int(math.Floor(upper[0]+0.5)))
				}
			case middle < lower[1]:
				left = append(left, edge)
				// The order of operations is GDAL's: the last bit is the same.
				right := float64((middle - upper[1]) * (lower[0] - upper[0]))
				d.ends = append(d.ends, float64(right/(lower[1]-upper[1]))+upper[0])
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
	count := len(r)
	if count > 1 && r[0] == r[count-1] {
		count--
	}
	if count < 3 {
		return false
	}
	lowest := 0
	for i, corner := range r[:count] {
		if corner[1] < r[lowest][1] || corner[1] == r[lowest][1] && corner[0] > r[lowest][0] {
			lowest = i
		}
	}
	first := r[lowest]
	turn := func(step int) (dx, dy float64) { // to the next other point
		for i := 1; i < count; i++ {
			if corner := r[(lowest+step*i+i*count)%count]; corner != first {
				return corner[0] - first[0], corner[1] - first[1]
			}
		}
		return 0, 0
	}
	beforeX, beforeY := turn(-1)
	afterX, afterY := turn(1)
	if cross := float64(afterX*beforeY) - float64(afterY*beforeX); cross != 0 {
		return cross < 0
	}
	area := 0.0
	for i := range count {
		a, b := r[i], r[(i+1)%count]
		area += float64((a[0]-r[0][0])*(b[1]-r[0][1])) - float64((b[0]-r[0][0])*(a[1]-r[0][1]))
	}
	return area < 0
}
