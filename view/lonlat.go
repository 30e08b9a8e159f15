package view

import "math"

// Ellipsoids differ by less than a pixel of a map of footprints: WGS 84 stands for GRS 80 too.
const (
	semiMajor  = 6378137.0
	flattening = 1 / 298.257223563
)

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
	case epsg >= 32601 && epsg <= 32660:
		lon, lat = inverseUTM(epsg-32600, false, x, y)
	case epsg >= 32701 && epsg <= 32760:
		lon, lat = inverseUTM(epsg-32700, true, x, y)
	case epsg >= 25828 && epsg <= 25838:
		lon, lat = inverseUTM(epsg-25800, false, x, y)
	case epsg >= 26901 && epsg <= 26923:
		lon, lat = inverseUTM(epsg-26900, false, x, y)
	case epsg == 3857:
		lon, lat = degrees(x/semiMajor), degrees(math.Atan(math.Sinh(y/semiMajor)))
	default:
		return 0, 0, false
	}
	return lon, lat, math.Abs(lon) <= 540 && math.Abs(lat) <= 90 // false for NaN
}

func degrees(r float64) float64 { return r * 180 / math.Pi }

// krueger are the coefficients of the series from the third flattening n: of the inverse projection, and
// from conformal to geodetic latitude. radius is that of the circle with the meridian's length.
//
// The series are those of L. Krüger, Konforme Abbildung des Erdellipsoids in der Ebene (1912), to the
// order n⁴, as in C. F. F. Karney, Transverse Mercator with an accuracy of a few nanometers, Journal of
// Geodesy 85 (2011), equations 14 and 36; the last as in K. Kawase, A general formula for calculating
// meridian arc length, Bulletin of the Geospatial Information Authority of Japan 59 (2011). The error is
// less than a millimetre within 3,000 km of the central meridian.
var krueger = func() (k struct {
	radius      float64
	beta, delta [4]float64
},
) {
	const n = flattening / (2 - flattening)
	const n2, n3, n4 = n * n, n * n * n, n * n * n * n
	k.radius = semiMajor / (1 + n) * (1 + n2/4 + n4/64)
	k.beta = [4]float64{
		n/2 - 2*n2/3 + 37*n3/96 - n4/360,
		n2/48 + n3/15 - 437*n4/1440,
		17*n3/480 - 37*n4/840,
		4397 * n4 / 161280,
	}
	k.delta = [4]float64{
		2*n - 2*n2/3 - 2*n3 + 116*n4/45,
		7*n2/3 - 8*n3/5 - 227*n4/45,
		56*n3/15 - 136*n4/35,
		4279 * n4 / 630,
	}
	return k
}()

// inverseUTM takes easting and northing in metres to degrees. Points too far from the zone give NaN.
func inverseUTM(zone int, south bool, x, y float64) (lon, lat float64) {
	const k0, falseEasting, falseNorthing = 0.9996, 500_000, 10_000_000
	if south {
		y -= falseNorthing
	}
	xi, eta := y/(k0*krueger.radius), (x-falseEasting)/(k0*krueger.radius)
	if !(math.Abs(eta) < 1 && math.Abs(xi) <= math.Pi/2) {
		return math.NaN(), math.NaN()
	}
	xi1, eta1 := xi, eta
	for j, b := range krueger.beta {
		m := 2 * float64(j+1)
		xi1 -= b * math.Sin(m*xi) * math.Cosh(m*eta)
		eta1 -= b * math.Cos(m*xi) * math.Sinh(m*eta)
	}
	chi := math.Asin(math.Sin(xi1) / math.Cosh(eta1))
	phi := chi
	for j, d := range krueger.delta {
		phi += d * math.Sin(2*float64(j+1)*chi)
	}
	return float64(6*zone-183) + degrees(math.Atan2(math.Sinh(eta1), math.Cos(xi1))), degrees(phi)
}
