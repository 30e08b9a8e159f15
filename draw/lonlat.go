package draw

import (
	"math"

	"github.com/chaski-eo/chaski/crs/lonlat"
)

// semiMajor is the radius of web Mercator's sphere, in metres.
const semiMajor = 6378137.0

// LonLat takes a point (x, y) of a CRS to longitude and latitude in degrees on WGS 84, or returns false
// for a CRS it does not know or a point outside of it. It knows
//
//   - geographic CRSs: EPSG 4326 (WGS 84), 4258 (ETRS89), 4269 (NAD83), as x = longitude, y = latitude;
//   - UTM: EPSG 32601–32660 and 32701–32760 (WGS 84), 25828–25838 (ETRS89), 26901–26923 (NAD83);
//   - EPSG 3857 (web Mercator).
//
// The datums are taken as one, which is true to 2 m: enough for pictures, not for measuring. Longitudes
// of UTM zones at the antimeridian may lie past ±180, so that a box stays in one piece.
func LonLat(epsg int, x, y float64) (lon, lat float64, ok bool) {
	switch {
	case epsg == 4326 || epsg == 4258 || epsg == 4269:
		lon, lat = x, y
	case lonlat.IsUTM(int64(epsg)):
		if lon, lat, ok = lonlat.UTM(int64(epsg), x, y); !ok {
			return 0, 0, false
		}
	case epsg == 3857:
		lon, lat = degrees(x/semiMajor), degrees(math.Atan(math.Sinh(y/semiMajor)))
	default:
		return 0, 0, false
	}
	return lon, lat, math.Abs(lon) <= 540 && math.Abs(lat) <= 90 // false for NaN
}

func degrees(r float64) float64 { return r * 180 / math.Pi }
