package clip

import (
	"cmp"
	"math"
	"slices"

	"github.com/paulmach/orb"

	"github.com/chaski-eo/chaski/internal/num"
)

// Ring is a closed line without its first point again at its end.
type Ring struct {
	Points []orb.Point
	Hole   bool
}

// rounding is the area in square pixels up to which a ring may have no inside. A polygon whose side runs along the
// window's edge may reach past it by the rounding of a coordinate, about 1e-9 pixels for coordinates of 1e7 m, times
// the length of the side, up to some thousand pixels.
const rounding = 1e-6

// farthest bounds coordinates: the difference of two is finite then, so no crossing is NaN.
const farthest = math.MaxFloat64 / 4

// measurable reports whether the coordinates of a point are numbers up to farthest.
func measurable(p orb.Point) bool { return math.Abs(p[0]) <= farthest && math.Abs(p[1]) <= farthest }

// Polygon returns the part of a polygon in the window, as rings. A point is in the polygon if it is inside of an odd
// number of its rings, and of the loops of a ring that crosses itself. Outlines come before holes and have a positive
// area by the shoelace formula, holes a negative one; loops that turn opposite ways may make it 0. A
// polygon with a coordinate that is infinite, NaN or beyond farthest lies outside all windows. The rings given are not
// changed, and may share memory with the result.
func Polygon(p orb.Polygon, width, height float64) []Ring {
	rings := make([]Ring, 0, len(p))
	for i, ring := range p {
		for _, corner := range ring {
			if !measurable(corner) {
				return nil
			}
		}
		rings = append(rings, Ring{open(ring), i > 0})
	}
	for axis, size := range [2]float64{width, height} {
		rings = half(rings, axis, 0, 1)
		rings = half(rings, axis, size, -1)
	}
	kept := rings[:0]
	for _, ring := range rings {
		ring.Points = smooth(ring.Points, width, height)
		area := Area(ring.Points)
		if math.Abs(area) <= rounding && hollow(ring.Points) {
			continue
		}
		if ring.Hole != (area < 0) {
			ring.Points = slices.Clone(ring.Points)
			slices.Reverse(ring.Points)
		}
		kept = append(kept, ring)
	}
	slices.SortStableFunc(kept, func(a, b Ring) int {
		switch {
		case a.Hole == b.Hole:
			return 0
		case b.Hole:
			return -1
		}
		return 1
	})
	return kept
}

// open returns a ring without its first point at its end.
func open(r orb.Ring) []orb.Point {
	count := len(r)
	for count > 1 && r[count-1] == r[0] {
		count--
	}
	return r[:count]
}

// insideChain is a part of an outline on the inner side of a line, from one crossing of it to the next.
type insideChain []orb.Point

// half returns what of rings lies where sign·(coordinate - bound) is not negative. Where outlines cross the bound they
// are cut open, and the ends are joined along it: between the first and the second of the crossings, in their order
// along the bound, lies the polygon, and so between the third and the fourth.
func half(rings []Ring, axis int, bound, sign float64) (out []Ring) {
	var cut []insideChain
	for _, ring := range rings {
		inside := func(p orb.Point) bool { return sign*(p[axis]-bound) >= 0 }
		first := slices.IndexFunc(ring.Points, func(p orb.Point) bool { return !inside(p) })
		switch {
		case first < 0:
			out = append(out, ring)
			continue
		case !slices.ContainsFunc(ring.Points, inside):
			continue
		}
		count := len(ring.Points)
		var current insideChain
		for i := range count {
			point, next := ring.Points[(first+i)%count], ring.Points[(first+i+1)%count]
			switch {
			case !inside(point) && inside(next):
				current = insideChain{cross(point, next, axis, bound), next}
			case inside(point) && inside(next):
				current = append(current, next)
			case inside(point):
				cut, current = append(cut, append(current, cross(point, next, axis, bound))), nil
			}
		}
	}
	return append(out, join(cut, 1-axis)...)
}

// cross returns where the line from a to b crosses a bound.
func cross(a, b orb.Point, axis int, bound float64) orb.Point {
	// The lower end comes first whichever way the line runs: two polygons with a common side are cut at one point.
	if a[axis] > b[axis] {
		a, b = b, a
	}
	part := (bound - a[axis]) / (b[axis] - a[axis])
	var crossing orb.Point
	crossing[axis] = bound
	// The conversions keep processors with fused multiply-add from another last bit.
	crossing[1-axis] = a[1-axis] + float64(part*(b[1-axis]-a[1-axis]))
	return crossing
}

// join closes chains to rings along the bound that they end on; along is the axis in which the bound runs.
func join(cut []insideChain, along int) (out []Ring) {
	// End 2k is the begin of chain k, and end 2k+1 its end.
	place := func(end int) float64 {
		chain := cut[end/2]
		if end%2 == 0 {
			return chain[0][along]
		}
		return chain[len(chain)-1][along]
	}
	ends := num.Range[int](0, 2*len(cut))
	slices.SortStableFunc(ends, func(a, b int) int { return cmp.Compare(place(a), place(b)) })
	other := make([]int, len(ends)) // the end that each one is joined with
	for i := 0; i < len(ends); i += 2 {
		other[ends[i]], other[ends[i+1]] = ends[i+1], ends[i]
	}
	used := make([]bool, len(cut))
	for index := range cut {
		if used[index] {
			continue
		}
		var points []orb.Point
		for end := 2 * index; !used[end/2]; end = other[end^1] { // along the chain to its other end, and from there on
			used[end/2] = true
			if end%2 == 0 {
				points = append(points, cut[end/2]...)
				continue
			}
			for _, point := range slices.Backward(cut[end/2]) {
				points = append(points, point)
			}
		}
		out = append(out, Ring{Points: points})
	}
	return out
}

// smooth leaves out points that repeat the one before, and those between two others on the same edge of the window:
// an outline that runs along it and back again has no area there.
func smooth(points []orb.Point, width, height float64) []orb.Point {
	plain := func(a, b, c orb.Point) bool {
		for axis, size := range [2]float64{width, height} {
			if (b[axis] == 0 || b[axis] == size) && a[axis] == b[axis] && b[axis] == c[axis] {
				return true
			}
		}
		return b == c
	}
	var out []orb.Point
	for _, point := range points {
		for len(out) > 1 && plain(out[len(out)-2], out[len(out)-1], point) || len(out) > 0 && out[len(out)-1] == point {
			out = out[:len(out)-1]
		}
		out = append(out, point)
	}
	for changed := true; changed && len(out) > 2; { // around the place where the ring begins
		changed = false
		if count := len(out); plain(out[count-2], out[count-1], out[0]) {
			out, changed = out[:count-1], true
		} else if plain(out[count-1], out[0], out[1]) {
			out, changed = out[1:], true
		}
	}
	return out
}

// hollow reports whether a ring whose area is about 0 has no inside: it is thin, or it runs back the way that it came.
// The loops of a ring that crosses itself, such as a box whose corners are in crossed order, may add up to 0, too.
func hollow(points []orb.Point) bool {
	if len(points) < 3 {
		return true
	}
	from := func(p orb.Point) (x, y float64) { return p[0] - points[0][0], p[1] - points[0][1] }
	farX, farY := 0.0, 0.0
	for _, point := range points {
		if x, y := from(point); math.Hypot(x, y) > math.Hypot(farX, farY) {
			farX, farY = x, y
		}
	}
	thin := true
	sides := map[[2]orb.Point]bool{} // those that the ring runs along an odd number of times
	for i, point := range points {
		x, y := from(point)
		thin = thin && math.Abs(farX*y-farY*x) <= 2*rounding
		side := [2]orb.Point{points[(i+len(points)-1)%len(points)], point}
		if slices.Compare(side[0][:], side[1][:]) > 0 {
			side[0], side[1] = side[1], side[0]
		}
		if sides[side] = !sides[side]; !sides[side] {
			delete(sides, side)
		}
	}
	return thin || len(sides) == 0
}

// Area returns the area of a ring by the shoelace formula: its sign says which way the ring turns.
func Area(r []orb.Point) (area float64) {
	for i, point := range r {
		before := r[(i+len(r)-1)%len(r)]
		area += float64((before[0]-r[0][0])*(point[1]-r[0][1])) - float64((point[0]-r[0][0])*(before[1]-r[0][1]))
	}
	return area / 2
}

// Segment returns what of the line from a to b lies in the window, and false if nothing does.
func Segment(a, b orb.Point, width, height float64) (from, to orb.Point, ok bool) {
	if !measurable(a) || !measurable(b) {
		return a, b, false
	}
	low, high := 0.0, 1.0
	for axis, size := range [2]float64{width, height} {
		delta := b[axis] - a[axis]
		if delta == 0 {
			if !(a[axis] >= 0 && a[axis] <= size) {
				return a, b, false
			}
			continue
		}
		lower, upper := (0-a[axis])/delta, (size-a[axis])/delta
		low, high = max(low, min(lower, upper)), min(high, max(lower, upper))
	}
	if !(low <= high) { // or one is not a number
		return a, b, false
	}
	point := func(t float64) orb.Point {
		place := orb.Point{a[0] + float64(t*(b[0]-a[0])), a[1] + float64(t*(b[1]-a[1]))}
		return orb.Point{max(0, min(place[0], width)), max(0, min(place[1], height))}
	}
	return point(low), point(high), true
}
