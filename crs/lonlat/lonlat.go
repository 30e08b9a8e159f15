// Package lonlat takes points of UTM and of web Mercator to longitude and latitude: the inverse transverse Mercator
// projection by Krüger's series to the fourth order of the third flattening (Karney 2011, Transverse Mercator with an
// accuracy of a few nanometers, J. Geod. 85, equations 7 to 11 and 36), and the inverse Mercator projection of the sphere
// (EPSG guidance note 7-2, method 1024). Every operation is one of IEEE 754 float64, rounded by itself; sine, exponential
// and arc tangent are sums, so that all programs have the same bits: splits by place go by them (docs/order.md).
package lonlat

import "math"

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

// IsUTM reports whether an EPSG code is of a zone of UTM: 32601 to 32660 and 32701 to 32760 on WGS 84, 25828 to 25838 on
// ETRS89 and 26901 to 26923 on NAD83.
func IsUTM(epsg int64) bool {
	n, _ := zone(epsg)
	return n != 0
}

// zone returns the zone that a code stands for, or 0.
func zone(epsg int64) (n int64, south bool) {
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

// UTM returns the longitude and latitude in degrees of a point in metres of the CRS that an EPSG code for which IsUTM holds
// stands for. Datums are taken for one: they differ by less than 3 m. The longitude may lie past ±180. ok is false for a point
// that is none of the zone.
func UTM(epsg int64, x, y float64) (lon, lat float64, ok bool) {
	n, south := zone(epsg)
	if south {
		y -= 10_000_000
	}
	lon, lat, ok = inverseUTM(x, y)
	return lon + float64(6*n-183), lat, ok
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

// Mercator returns longitude and latitude in degrees of a point of web Mercator (EPSG:3857), in metres. ok is false for
// one that is far outside of the map.
func Mercator(x, y float64) (lon, lat float64, ok bool) {
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
