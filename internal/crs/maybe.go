package crs

import (
	"math"

	"github.com/chaski-eo/chaski/internal/epsg"
)

// datums is how far two datums may have one place apart, in metres: datums of national maps differ by up to some
// hundred.
const datums = 1000

// MayBe reports whether a CRS with parameters, as epsg.Definition.String writes them, may be the one with a code: it
// has the points, in units of the CRS, at the places on the Earth where the other has them, but for the datum. What the
// package does not know may be the same.
func MayBe(code int, parameters string, points []Point) bool {
	known, ok := ByCode(code)
	other, err := ByDefinition(epsg.ParseDefinition(parameters))
	if !ok || err != nil {
		return true
	}
	places, others := make([]Point, len(points)), make([]Point, len(points))
	known.Inverse(places, points)
	other.Inverse(others, points)
	const degree = 111_320 // metres of a degree of latitude, or of longitude at the equator
	for i := range places {
		across := math.Abs(math.Remainder(places[i][0]-others[i][0], 360)) * math.Cos(places[i][1]*math.Pi/180)
		far := degree * math.Hypot(across, places[i][1]-others[i][1])
		if far > datums || math.IsNaN(far) != math.IsNaN(places[i][0]) {
			return false
		}
	}
	return true
}
