// Package lonlat converts coordinates to longitude and latitude with results that are equal, bit for bit, on every
// machine and in every language. It has the only functions of package crs and below whose bits are promised.
//
// The promise exists because splits by place (split by_lonlat, docs/order.md) put a sample into a
// cell of degrees: if two machines disagreed about the last bit, a sample at the edge of a cell
// would be training data on one and test data on the other. testdata/lonlat_vectors.py has the same
// formulas, and testdata/lonlat.json its bits. Package crs serves all else.
// It knows 6,000 CRSs and datum shifts, but calls the math library, whose last bits differ between
// platforms.
//
// UTM is the inverse transverse Mercator projection by Krüger's series to the fourth order of the third flattening
// (Karney 2011, Transverse Mercator with an accuracy of a few nanometers, J. Geod. 85, equations 7 to 11 and 36), web
// Mercator the inverse Mercator projection of the sphere (EPSG guidance note 7-2, method 1024). Datums are taken for
// WGS 84: the known CRSs differ from it by less than 3 m.
package lonlat

import (
	"fmt"
	"math"
)

// utmRadius is the radius of the rectifying circle of WGS 84, times UTM's scale of 0.9996 at the central meridian, in
// metres.
const utmRadius = 6364902.1661650855

var (
	// The coefficients beta and delta of Karney's series for WGS 84. They are literals because computing them from the
	// flattening would add roundings that every other implementation had to repeat.
	utmBeta  = [4]float64{0.0008377321640600574, 5.905869567933988e-08, 1.6734888803548483e-10, 2.1677377630220365e-13}
	utmDelta = [4]float64{0.0033565514691252124, 6.571873083960133e-06, 1.76465640047585e-08, 5.400482081693544e-11}
)

const (
	degree       = 57.29577951308232 // 180/π: degrees in a radian
	sphereRadius = 6378137           // of web Mercator's sphere, in metres
)

// At returns the longitude in [-180, 180) and the latitude of a point, in degrees. ok is false if
// the point lies outside of the CRS. An unknown EPSG code is an error; see Known.
func At(epsg int64, x, y float64) (lon, lat float64, ok bool, err error) {
	if !Known(epsg) {
		return 0, 0, false, fmt.Errorf("EPSG:%d cannot be converted to longitude and latitude: supported are "+
			"longitude and latitude themselves (4326 and the like), UTM (326xx, 327xx, 258xx, 269xx) and 3857", epsg)
	}
	lon, lat, ok = Inverse(epsg, x, y)
	switch {
	case lon >= 180:
		lon -= 360
	case lon < -180:
		lon += 360
	}
	return lon, lat, ok && -180 <= lon && lon < 180 && math.Abs(lat) <= 90, nil
}

// Known reports whether Inverse converts coordinates of an EPSG code: longitude and latitude on WGS 84 or on a datum
// within 3 m of it, UTM on WGS 84 (32601 to 32660, 32701 to 32760), ETRS89 (25828 to 25838) and NAD83 (26901 to 26923),
// and web Mercator (3857).
func Known(epsg int64) bool {
	number, _ := zone(epsg)
	return number != 0 || epsg == 3857 || geographic(epsg)
}

// Inverse returns the longitude and latitude of a point, in degrees. Unlike in At, longitudes
// may lie past ±180, so an outline across the antimeridian stays in one piece. ok is false if
// the point lies outside of the CRS or the code is unknown.
func Inverse(epsg int64, x, y float64) (lon, lat float64, ok bool) {
	switch {
	case geographic(epsg):
		lon, lat, ok = x, y, true
	case epsg == 3857:
		lon, lat, ok = mercator(x, y)
	default:
		lon, lat, ok = utm(epsg, x, y)
	}
	// 540 is 180 and one turn, because files of some providers count longitudes from 0 to 360 or past the antimeridian.
	return lon, lat, ok && math.Abs(lon) <= 540 && math.Abs(lat) <= 90 // false for NaN
}

// geographic reports whether the coordinates of an EPSG code are longitude and latitude on WGS 84 or within some metres
// of it.
func geographic(epsg int64) bool {
	switch epsg {
	case 4326, // WGS 84
		4258, // ETRS89
		4269, // NAD83
		4283, // GDA94
		7844, // GDA2020
		4674, // SIRGAS 2000
		4167, // NZGD2000
		4171: // RGF93
		return true
	}
	return false
}

// zone returns the number of the UTM zone of an EPSG code and whether it is a southern one, or 0.
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

// utm converts a point in metres of a UTM zone.
func utm(epsg int64, x, y float64) (lon, lat float64, ok bool) {
	number, south := zone(epsg)
	if number == 0 {
		return 0, 0, false
	}
	if south {
		y -= 10_000_000 // the false northing of southern zones
	}
	lon, lat, ok = inverseUTM(x, y)
	return lon + float64(6*number-183), lat, ok
}

// inverseUTM converts an easting, and a northing from the equator, to degrees from the central meridian and a latitude.
//
// Here and below float64(...) around each product prevents the compiler from fusing it with an addition, which some
// processors do and others do not: the results would differ in the last bit.
func inverseUTM(x, y float64) (lon, lat float64, ok bool) {
	xi, eta := y/utmRadius, (x-500_000)/utmRadius
	// The bounds, a quarter past the pole and 50 degrees from the meridian at the equator, keep the
	// arguments of sinCos and sinhCosh where their sums converge, and refuse NaN.
	if !(math.Abs(xi) <= 2 && math.Abs(eta) <= 1) {
		return 0, 0, false
	}
	sin, cos := sinCos(2 * xi)
	sinh, cosh := sinhCosh(2 * eta)
	sinJ, cosJ, sinhJ, coshJ := sin, cos, sinh, cosh
	for j, beta := range utmBeta {
		if j > 0 {
			sinJ, cosJ = float64(sinJ*cos)+float64(cosJ*sin), float64(cosJ*cos)-float64(sinJ*sin)
			sinhJ, coshJ = float64(sinhJ*cosh)+float64(coshJ*sinh), float64(coshJ*cosh)+float64(sinhJ*sinh)
		}
		xi -= float64(beta * float64(sinJ*coshJ))
		eta -= float64(beta * float64(cosJ*sinhJ))
	}
	sin, cos = sinCos(xi)
	sinh, _ = sinhCosh(eta)
	if cos <= 0 {
		return 0, 0, false
	}
	chi := arcTan(sin / math.Sqrt(float64(sinh*sinh)+float64(cos*cos)))
	lon = float64(arcTan(sinh/cos) * degree)
	sin, cos = sinCos(2 * chi)
	sinJ, cosJ = sin, cos
	for j, delta := range utmDelta {
		if j > 0 {
			sinJ, cosJ = float64(sinJ*cos)+float64(cosJ*sin), float64(cosJ*cos)-float64(sinJ*sin)
		}
		chi += float64(delta * sinJ)
	}
	return lon, float64(chi * degree), true
}

// mercator converts a point of web Mercator (EPSG:3857), in metres.
func mercator(x, y float64) (lon, lat float64, ok bool) {
	u, v := x/sphereRadius, y/sphereRadius
	// The map is 2π wide and as high. 4 leaves room past its edges, within the reach of sinhCosh.
	if !(math.Abs(u) <= 4 && math.Abs(v) <= 4) {
		return 0, 0, false
	}
	sinh, _ := sinhCosh(v)
	return float64(u * degree), float64(arcTan(sinh) * degree), true
}

// sinCos returns the sine and cosine of |t| <= 4, summed by Taylor's series since the results of math libraries differ
// in the last bits.
func sinCos(t float64) (s, c float64) {
	square := float64(t * t)
	s, c = t, 1
	// 20 terms of each: the next one is below 4^40/40! = 1.5e-24.
	sinTerm, cosTerm := t, 1.0
	for i := 1; i <= 20; i++ {
		k := float64(2 * i)
		cosTerm = -float64(cosTerm*square) / float64((k-1)*k)
		sinTerm = -float64(sinTerm*square) / float64(k*(k+1))
		s, c = s+sinTerm, c+cosTerm
	}
	return s, c
}

// sinhCosh returns the hyperbolic sine and cosine of |t| <= 4.
func sinhCosh(t float64) (s, c float64) {
	// 50 terms: the next one is below 4^51/51! = 3.3e-36.
	exp, term := 1.0, 1.0
	for i := 1; i <= 50; i++ {
		term = float64(term*t) / float64(i)
		exp += term
	}
	inverse := 1 / exp
	return float64((exp - inverse) * 0.5), float64((exp + inverse) * 0.5)
}

// arcTan returns the arc tangent of t.
func arcTan(t float64) float64 {
	// Halving the angle three times leaves at most π/16, whose tangent is 0.2: the 16th term of the series is
	// below 1e-24, while at 1 it would hardly converge.
	for range 3 {
		t /= 1 + math.Sqrt(1+float64(t*t))
	}
	square, power, sum := float64(t*t), t, t
	for i := 1; i <= 16; i++ {
		power = -float64(power * square)
		sum += power / float64(2*i+1)
	}
	return float64(8 * sum)
}
