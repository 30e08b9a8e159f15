package ground

import (
	"math"

	"github.com/paulmach/orb"
	"github.com/paulmach/orb/clip"

	"github.com/chaski-eo/chaski/internal/crs"
)

// wgs84 is where the rings of all CRSs meet: longitudes and latitudes.
var wgs84 = func() *crs.CRS {
	c, ok := crs.ByCode(4326)
	if !ok {
		panic("scenes: EPSG:4326 is not known")
	}
	return c
}()

// depth bounds how often a side of a ring is halved: into 4,096 pieces.
const depth = 12

// trace returns a ring as it runs on another map: its sides are halved until their middles are within off of the
// exact ones. A point without a place there makes it nil. cut says that the ring jumps, because the map is cut there.
func trace(ring orb.Ring, t *crs.Transform, off float64) (out orb.Ring, cut bool) {
	if t.Same() {
		return ring, false
	}
	var halve func(a, b, ta, tb orb.Point, n int)
	halve = func(a, b, ta, tb orb.Point, n int) {
		half := orb.Point{(a[0] + b[0]) / 2, (a[1] + b[1]) / 2}
		middle := point(t, half)
		bend := math.Hypot(middle[0]-(ta[0]+tb[0])/2, middle[1]-(ta[1]+tb[1])/2)
		flat := bend <= off
		// A side may bend both ways, and its middle then lies on the chord: each is halved twice at least.
		if n == 0 || flat && n <= depth-2 {
			out = append(out, tb)
			// The bend of a short side is a small part of its length. Where it jumps, its middle is at one of its ends.
			cut = cut || !flat && bend > math.Hypot(tb[0]-ta[0], tb[1]-ta[1])/4
			return
		}
		halve(a, half, ta, middle, n-1)
		halve(half, b, middle, tb, n-1)
	}
	for i := range ring {
		traced := point(t, ring[i])
		if i == 0 {
			out = append(out, traced)
			continue
		}
		halve(ring[i-1], ring[i], out[len(out)-1], traced, depth)
	}
	for _, p := range out {
		if p[0] != p[0] || p[1] != p[1] {
			return nil, cut
		}
	}
	return out, cut
}

// unwrap makes longitudes of a ring go on past 180 degrees, so neighbours are less than half a turn apart. It
// reports false for a ring around a pole, which does not end where it began.
func unwrap(ring orb.Ring) bool {
	for i := 1; i < len(ring); i++ {
		ring[i][0] = ring[i-1][0] + math.Remainder(ring[i][0]-ring[i-1][0], 360)
	}
	n := len(ring)
	return n == 0 || math.Abs(ring[0][0]-ring[n-1][0]) < 180
}

// degreesOff is how far a side of a ring of longitudes and latitudes may be from the exact one: 1e-6 degrees, 0.1 m.
const degreesOff = 1e-6

// lonlat returns rings of a CRS as longitudes and latitudes, nil if a point has none or if they go around a pole.
func lonlat(p orb.Polygon, from *crs.CRS) (orb.Polygon, error) {
	transform, err := crs.NewTransform(from, wgs84)
	if err != nil {
		return nil, err
	}
	var out orb.Polygon
	for _, ring := range p {
		if from.Geographic() && from.Near() {
			ring = append(orb.Ring(nil), ring...) // sides are straight in degrees
		} else {
			ring, _ = trace(ring, transform, degreesOff) // longitudes jump at 180 degrees
		}
		if ring == nil {
			return nil, nil
		}
		if !from.Geographic() && !unwrap(ring) {
			return nil, nil
		}
		out = append(out, ring)
	}
	return out, nil
}

// grain is the parts of a unit of a map that corners are rounded to: 1/1024 m hides the last bits of projections, in
// which machines differ, so all of them find the same cells.
const grain = 1024

// turns are the degrees by which longitudes are moved to find them on a map.
var turns = [...]float64{-360, 0, 360}

// on returns a polygon of longitudes and latitudes on map m, cut to a box of these that the map shows, in as many
// pieces as that gives. It fails with kind unsupported if the map does not show all of the polygon that lies in the
// box.
func (m *Map) on(p orb.Polygon, off float64, shown orb.Bound) (out []orb.Polygon, _ error) {
	transform, err := crs.NewTransform(wgs84, m.CRS)
	if err != nil {
		return nil, err
	}
	for _, turn := range turns {
		moved := make(orb.Polygon, len(p))
		for i, ring := range p {
			moved[i] = make(orb.Ring, len(ring))
			for k, vertex := range ring {
				moved[i][k] = orb.Point{vertex[0] + turn, vertex[1]}
			}
		}
		if !moved.Bound().Intersects(shown) {
			continue
		}
		piece := clip.Polygon(shown, moved)
		traced := make(orb.Polygon, len(piece))
		for i, ring := range piece {
			cut := false
			if traced[i], cut = trace(ring, transform, off); traced[i] == nil || cut {
				return nil, m.offMap(ring.Bound())
			}
		}
		if len(piece) == 0 {
			continue
		}
		if !shows(piece[:1], traced[0], transform, 2*off) {
			return nil, m.offMap(piece.Bound())
		}
		for _, ring := range traced {
			round(ring)
		}
		out = append(out, traced)
	}
	return out, nil
}

func round(ring orb.Ring) {
	for i := range ring {
		for axis := range ring[i] {
			ring[i][axis] = math.Round(ring[i][axis]*grain) / grain
		}
	}
}
