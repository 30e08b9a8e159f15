package shuffle

import (
	"fmt"
	"math"
)

// Longitude and latitude of a point of a projected CRS, for splits by cell: the inverse transverse Mercator
// projection by Krüger's series to the fourth order of the third flattening (Karney 2011, Transverse Mercator with an
// accuracy of a few nanometers, J. Geod. 85, equations 7 to 11 and 36), and the inverse Mercator projection of the sphere
// (EPSG guidance note 7-2, method 1024). Every operation is one of IEEE 754 float64, rounded by itself; sine, exponential
// and arc tangent are the sums below, so that all programs have the same bits.

// Of WGS 84: the radius of UTM's rectifying circle times its scale 0.9996, in metres, and the series' coefficients.
const utmRadius = 6364902.1661650855

var (
	utmBeta  = [4]float64{0.0008377321640600574, 5.905869567933988e-08, 1.6734888803548483e-10, 2.1677377630220365e-13}
	utmDelta = [4]float64{0.0033565514691252124, 6.571873083960133e-06, 1.76465640047585e-08, 5.400482081693544e-11}
)

const (
	degree       = 57.29577951308232 // degrees of a radian
	sphereRadius = 6378137           // of web Mercator, in metres
)

// LonLat returns the longitude in [-180, 180) and the latitude of a point, in degrees, of a CRS by its EPSG code. Known are
// those in which coordinates are longitude and latitude (4326 and the others of geographic), UTM on WGS 84 (32601 to 32660,
// 32701 to 32760), ETRS89 (25828 to 25838) and NAD83 (26901 to 26923), and web Mercator (3857). Datums are taken for one:
// they differ by less than 3 m. ok is false where the point is none of the CRS; the error is of a CRS that is not known.
func LonLat(epsg int64, x, y float64) (lon, lat float64, ok bool, err error) {
	switch zone, south := utmZone(epsg); {
	case geographic(epsg):
		lon, lat, ok = x, y, true
	case epsg == 3857:
		lon, lat, ok = inverseMercator(x, y)
	case zone == 0:
		return 0, 0, false, fmt.Errorf("cells in longitude and latitude of EPSG:%d: known are longitude and latitude themselves (4326 and its like), UTM (326xx, 327xx, 258xx, 269xx) and 3857", epsg)
	default:
		if south {
			y -= 10_000_000
		}
		lon, lat, ok = inverseUTM(x, y)
		lon += float64(6*zone - 183)
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

// utmZone returns the zone of UTM that a code stands for, or 0.
func utmZone(epsg int64) (zone int64, south bool) {
	switch {
	case epsg > 32600 && epsg <= 32660:
		return epsg - 32600, false
	case epsg > 32700 && epsg <= 32760:
		return epsg - 32700, true
	case epsg >= 25828 && epsg <= 25838:
		return epsg - 25800, false
	case epsg > 26900 && epsg <= 26923:
		return epsg - 26900, false
	}
	return 0, false
}

// inverseUTM returns degrees from the central meridian and the latitude of an easting, and a northing from the equator.
func inverseUTM(x, y float64) (lon, lat float64, ok bool) {
	xi, eta := y/utmRadius, (x-500_000)/utmRadius
	if !(math.Abs(xi) <= 2 && math.Abs(eta) <= 1) {
		return 0, 0, false
	}
	s, c := sinCos(2 * xi)
	sh, ch := sinhCosh(2 * eta)
	sj, cj, shj, chj := s, c, sh, ch
	for j, b := range utmBeta {
		if j > 0 {
			sj, cj = float64(sj*c)+float64(cj*s), float64(cj*c)-float64(sj*s)
			shj, chj = float64(shj*ch)+float64(chj*sh), float64(chj*ch)+float64(shj*sh)
		}
		xi -= float64(b * float64(sj*chj))
		eta -= float64(b * float64(cj*shj))
	}
	s, c = sinCos(xi)
	sh, _ = sinhCosh(eta)
	if c <= 0 {
		return 0, 0, false
	}
	chi := arcTan(s / math.Sqrt(float64(sh*sh)+float64(c*c)))
	lon = float64(arcTan(sh/c) * degree)
	s, c = sinCos(2 * chi)
	sj, cj = s, c
	for j, d := range utmDelta {
		if j > 0 {
			sj, cj = float64(sj*c)+float64(cj*s), float64(cj*c)-float64(sj*s)
		}
		chi += float64(d * sj)
	}
	return lon, float64(chi * degree), true
}

// inverseMercator returns longitude and latitude of a point of web Mercator.
func inverseMercator(x, y float64) (lon, lat float64, ok bool) {
	u, v := x/sphereRadius, y/sphereRadius
	if !(math.Abs(u) <= 4 && math.Abs(v) <= 4) {
		return 0, 0, false
	}
	sh, _ := sinhCosh(v)
	return float64(u * degree), float64(arcTan(sh) * degree), true
}

// sinCos returns sine and cosine of |t| <= 4.
func sinCos(t float64) (s, c float64) {
	q := float64(t * t)
	s, c = t, 1
	ts, tc := t, 1.0
	for i := 1; i <= 20; i++ {
		k := float64(2 * i)
		tc = -float64(tc*q) / float64((k-1)*k)
		ts = -float64(ts*q) / float64(k*(k+1))
		s, c = s+ts, c+tc
	}
	return s, c
}

// sinhCosh returns hyperbolic sine and cosine of |t| <= 4.
func sinhCosh(t float64) (s, c float64) {
	e, term := 1.0, 1.0
	for i := 1; i <= 50; i++ {
		term = float64(term*t) / float64(i)
		e += term
	}
	inv := 1 / e
	return float64((e - inv) * 0.5), float64((e + inv) * 0.5)
}

// arcTan halves the angle three times and sums the series.
func arcTan(t float64) float64 {
	for range 3 {
		t /= 1 + math.Sqrt(1+float64(t*t))
	}
	q, power, sum := float64(t*t), t, t
	for i := 1; i <= 16; i++ {
		power = -float64(power * q)
		sum += power / float64(2*i+1)
	}
	return float64(8 * sum)
}
