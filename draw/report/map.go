package report

import (
	"math"

	"github.com/chaski-eo/chaski/crs"
	"github.com/chaski-eo/chaski/store/catalog"
)

// Map has the footprints of samples, which are the outlines of their first rasters.
type Map struct {
	Looked, Of int64 // number of samples whose place was looked at, and of all samples
	Outlines   []Outline
	Elsewhere  int64 // georeferenced rasters that are not among Outlines, because their CRS is not known
	nowhere    int64 // rasters without a place
}

// Outline is the outline of an image: its corners in the order of a ring, in degrees of longitude and latitude.
type Outline [4]crs.Point

// add adds the footprint of a raster with a place, or nil.
func (m *Map) add(place *catalog.Place) {
	if place == nil {
		m.nowhere++
		return
	}
	system, known := crs.ByCode(place.EPSG)
	if !known {
		m.Elsewhere++
		return
	}
	c := place.Corners
	ring := Outline{c[0], c[1], c[3], c[2]}
	system.Inverse(ring[:], ring[:])
	for _, corner := range ring {
		// Not >, because that would accept NaN. 1,000 degrees leave room for maps that go on past the antimeridian.
		if !(math.Abs(corner[0]) < 1000 && math.Abs(corner[1]) <= 90) {
			m.nowhere++
			return
		}
	}
	m.Outlines = append(m.Outlines, ring)
}

// joinAntimeridian adds 360 degrees to western longitudes if that makes the map narrower: a dataset around Fiji would
// otherwise span the globe.
func (m *Map) joinAntimeridian() {
	lo, hi := math.Inf(1), math.Inf(-1)
	east, west := math.Inf(1), math.Inf(-1) // the same with western longitudes moved
	for _, outline := range m.Outlines {
		x := outline[0][0]
		lo, hi = min(lo, x), max(hi, x)
		if x < 0 {
			x += 360
		}
		east, west = min(east, x), max(west, x)
	}
	if hi-lo <= 180 || west-east >= hi-lo {
		return
	}
	for i := range m.Outlines {
		if m.Outlines[i][0][0] < 0 {
			for k := range m.Outlines[i] {
				m.Outlines[i][k][0] += 360
			}
		}
	}
}
