package ground

import (
	"math"

	"github.com/paulmach/orb"
	"github.com/paulmach/orb/planar"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/crs"
	"github.com/chaski-eo/chaski/store/catalog"
)

// The number of points along a box at which shows compares two maps: one for each 3 degrees of a polygon, to find folds
// of wider ones, and at most 64, for the whole world. One is enough for a scene of usual size, and there may be
// millions of these.
const (
	leastPoints = 3
	mostPoints  = 64
	pointEvery  = 3 // degrees
)

// shows reports whether a ring of a map, traced from a polygon of longitudes and latitudes, encloses the same area as
// the polygon. It does not if the map is cut or has its edge within the polygon: the ring then folds, or encloses the
// rest of the world. The test takes points of a lattice over each of the two and looks whether they lie in the other.
// It skips points within off map units of the ring.
func shows(at orb.Polygon, ring orb.Ring, t *crs.Transform, off float64) bool {
	if len(at) == 0 || len(ring) == 0 {
		return len(at) == len(ring)
	}
	bound := at.Bound()
	count := int(max(bound.Max[0]-bound.Min[0], bound.Max[1]-bound.Min[1]) / pointEvery)
	count = min(max(count, 1), mostPoints)
	// Called last, because it costs most.
	near := func(p orb.Point) bool { return planar.DistanceFrom(orb.LineString(ring), p) <= off }
	same := lattices(bound, count, func(p orb.Point) bool {
		if !planar.PolygonContains(at, p) {
			return true
		}
		moved := point(t, p)
		return moved[0] == moved[0] && moved[1] == moved[1] && (planar.RingContains(ring, moved) || near(moved))
	})
	back := t.Reverse()
	for _, p := range at[0] {
		same = same && returns(t, back, p)
	}
	return same && lattices(ring.Bound(), count, func(p orb.Point) bool {
		if !planar.RingContains(ring, p) {
			return true
		}
		moved := point(back, p)
		moved[0] = bound.Center()[0] + math.Remainder(moved[0]-bound.Center()[0], 360)
		return moved[0] == moved[0] && moved[1] == moved[1] && planar.PolygonContains(at, moved) || near(p)
	})
}

// returns reports whether a point comes back from a map: past its edge a map may go on, but not back.
func returns(there, back *crs.Transform, p orb.Point) bool {
	const (
		off  = 1e-5 // degrees, 1 m: more than shifts of datums lose
		pole = 90 - off
	)
	if math.Abs(p[1]) > pole { // all longitudes are one there
		return true
	}
	q := point(back, point(there, p))
	return math.Abs(math.Remainder(q[0]-p[0], 360)) <= off && math.Abs(q[1]-p[1]) <= off
}

// lattices reports whether do is true for n by n points of a box.
func lattices(b orb.Bound, n int, do func(orb.Point) bool) bool {
	width, height := b.Max[0]-b.Min[0], b.Max[1]-b.Min[1]
	for i := range n * n {
		x, y := (float64(i%n)+0.5)/float64(n), (float64(i/n)+0.5)/float64(n)
		if !do(orb.Point{b.Min[0] + width*x, b.Min[1] + height*y}) {
			return false
		}
	}
	return true
}

// point converts one point.
func point(t *crs.Transform, p orb.Point) orb.Point {
	points := [1]crs.Point{crs.Point(p)}
	t.Points(points[:], points[:])
	return orb.Point(points[0])
}

// offMap returns the error about longitudes and latitudes that a map does not show.
func (m *Map) offMap(b orb.Bound) error {
	return fault.New(fault.Unsupported, "place",
		"parts of longitude %.6g to %.6g, latitude %.6g to %.6g lie off the map of %v, or across its edge: give "+
			"another crs, or leave it out", b.Min[0], b.Max[0], b.Min[1], b.Max[1], m.CRS)
}

// pastUTM reports whether a footprint reaches past the latitudes of UTM, and whether all of it lies there.
func (f *sceneFootprint) pastUTM() (some, all bool) {
	lo, hi := f.bound.Min[1], f.bound.Max[1]
	return lo < south || hi > north, hi <= south || lo >= north
}

// errPastUTM returns the error about a place past the latitudes of UTM.
func errPastUTM(p *catalog.Place) error {
	return fault.New(fault.Unsupported, "place", "it lies at %v: UTM ends at %d degrees north and %d south: give "+
		"another crs, such as EPSG:3413 or EPSG:3031", p, north, -south)
}
