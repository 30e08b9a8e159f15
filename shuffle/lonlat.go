package shuffle

import (
	"fmt"

	"github.com/chaski-eo/chaski/crs/lonlat"
)

// LonLat returns the longitude in [-180, 180) and the latitude of a point, in degrees, of a CRS by its EPSG code. Known are
// those in which coordinates are longitude and latitude (4326 and the others of geographic), UTM on WGS 84 (32601 to 32660,
// 32701 to 32760), ETRS89 (25828 to 25838) and NAD83 (26901 to 26923), and web Mercator (3857). Datums are taken for one:
// they differ by less than 3 m. ok is false where the point is none of the CRS; the error is of a CRS that is not known.
func LonLat(epsg int64, x, y float64) (lon, lat float64, ok bool, err error) {
	switch {
	case geographic(epsg):
		lon, lat, ok = x, y, true
	case epsg == 3857:
		lon, lat, ok = lonlat.Mercator(x, y)
	case lonlat.IsUTM(epsg):
		lon, lat, ok = lonlat.UTM(epsg, x, y)
	default:
		return 0, 0, false, fmt.Errorf("cells in longitude and latitude of EPSG:%d: known are longitude and latitude themselves (4326 and its like), UTM (326xx, 327xx, 258xx, 269xx) and 3857", epsg)
	}
	switch {
	case lon >= 180:
		lon -= 360
	case lon < -180:
		lon += 360
	}
	return lon, lat, ok && lon >= -180 && lon < 180 && lat >= -90 && lat <= 90, nil
}

// geographic reports whether a code is of longitude and latitude on WGS 84 or within some metres of it: WGS 84, ETRS89,
// NAD83, GDA94, GDA2020, SIRGAS 2000, NZGD2000, RGF93.
func geographic(epsg int64) bool {
	switch epsg {
	case 4326, 4258, 4269, 4283, 7844, 4674, 4167, 4171:
		return true
	}
	return false
}
