package crs

import (
	"math"
	"strconv"
	"strings"
)

// datum shifts longitude and latitude to WGS 84 by way of geocentric coordinates (EPSG methods 9602
// and 9606). A nil datum shifts nothing.
type datum struct {
	own   *ellipsoid
	t, r  [3]float64 // metres, radians
	scale float64    // 1 + parts
}

var wgs84 = newEllipsoid(6378137, 298.257223563)

// datumOf returns the datum of a CRS.
func datumOf(q *parameters) *datum {
	text := q.text["wgs"]
	if base, ok := q.num["on"]; ok && q.kind != "longlat" {
		parameters, ok := split(find(int(base)))
		if !ok {
			return nil
		}
		text = parameters.text["wgs"]
	}
	if text == "" || text == "?" {
		return nil
	}
	var p [7]float64
	for i, s := range strings.Split(text, ",") {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil || i >= len(p) {
			return nil
		}
		p[i] = v
	}
	const second = math.Pi / 180 / 3600
	return &datum{
		own: newEllipsoid(q.a, q.rf), t: [3]float64{p[0], p[1], p[2]},
		r: [3]float64{p[3] * second, p[4] * second, p[5] * second}, scale: 1 + p[6]*1e-6,
	}
}

// to converts a point of the datum to WGS 84.
func (d *datum) to(lon, lat float64) (float64, float64) {
	if d == nil {
		return lon, lat
	}
	v := d.own.geocentric(lon, lat)
	return wgs84.geographic(lon, [3]float64{
		d.t[0] + d.scale*(v[0]-d.r[2]*v[1]+d.r[1]*v[2]),
		d.t[1] + d.scale*(d.r[2]*v[0]+v[1]-d.r[0]*v[2]),
		d.t[2] + d.scale*(-d.r[1]*v[0]+d.r[0]*v[1]+v[2]),
	})
}

// from is the inverse of to. It undoes the rotation by its transpose, whose error is the square of
// the angle: some 1e-10 of the radius, below 1 mm.
func (d *datum) from(lon, lat float64) (float64, float64) {
	if d == nil {
		return lon, lat
	}
	v := wgs84.geocentric(lon, lat)
	for i := range v {
		v[i] = (v[i] - d.t[i]) / d.scale
	}
	return d.own.geographic(lon, [3]float64{
		v[0] + d.r[2]*v[1] - d.r[1]*v[2],
		-d.r[2]*v[0] + v[1] + d.r[0]*v[2],
		d.r[1]*v[0] - d.r[0]*v[1] + v[2],
	})
}

// geocentric returns the place of a point at height 0.
func (l *ellipsoid) geocentric(lon, lat float64) [3]float64 {
	s, c := math.Sincos(lat * math.Pi / 180)
	sl, cl := math.Sincos(lon * math.Pi / 180)
	nu := l.a / math.Sqrt(1-l.e2*s*s)
	return [3]float64{nu * c * cl, nu * c * sl, nu * (1 - l.e2) * s}
}

// geographic is the inverse (Bowring 1985, for heights near 0). The longitude is in the same turn
// as near.
func (l *ellipsoid) geographic(near float64, v [3]float64) (lon, lat float64) {
	p := math.Hypot(v[0], v[1])
	b := l.a * math.Sqrt(1-l.e2)
	s, c := math.Sincos(math.Atan2(v[2]*l.a, p*b))
	lat = math.Atan2(v[2]+l.e2/(1-l.e2)*b*s*s*s, p-l.e2*l.a*c*c*c)
	lon = math.Atan2(v[1], v[0]) * 180 / math.Pi
	return near + math.Remainder(lon-near, 360), lat * 180 / math.Pi
}
