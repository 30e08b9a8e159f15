package crs

import (
	"math"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/internal/epsg"
)

// datumShift shifts longitude and latitude to WGS 84 by way of geocentric coordinates (EPSG methods 9602
// and 9606). A nil datum shifts nothing.
type datumShift struct {
	own   *ellipsoid
	t, r  [3]float64 // metres, radians
	scale float64    // 1 + parts
}

var wgs84 = newEllipsoid(6378137, 298.257223563)

// datumOf returns the datum of a CRS.
func datumOf(d *epsg.Definition) *datumShift {
	base, _ := epsg.ByCode(d.Base)
	text := base.Shift
	if text == "" || text == "?" {
		return nil
	}
	var shift [7]float64
	for i, word := range strings.Split(text, ",") {
		number, err := strconv.ParseFloat(word, 64)
		if err != nil || i >= len(shift) {
			return nil
		}
		shift[i] = number
	}
	const second = math.Pi / 180 / 3600
	return &datumShift{
		own: newEllipsoid(d.A, d.RF), t: [3]float64{shift[0], shift[1], shift[2]},
		r: [3]float64{shift[3] * second, shift[4] * second, shift[5] * second}, scale: 1 + shift[6]*1e-6,
	}
}

// to converts a point of the datum to WGS 84.
func (d *datumShift) to(lon, lat float64) (float64, float64) {
	if d == nil {
		return lon, lat
	}
	place := d.own.geocentric(lon, lat)
	return wgs84.geographic(lon, [3]float64{
		d.t[0] + d.scale*(place[0]-d.r[2]*place[1]+d.r[1]*place[2]),
		d.t[1] + d.scale*(d.r[2]*place[0]+place[1]-d.r[0]*place[2]),
		d.t[2] + d.scale*(-d.r[1]*place[0]+d.r[0]*place[1]+place[2]),
	})
}

// from is the inverse of to. It undoes the rotation by its transpose, whose error is the square of
// the angle: some 1e-10 of the radius, below 1 mm.
func (d *datumShift) from(lon, lat float64) (float64, float64) {
	if d == nil {
		return lon, lat
	}
	place := wgs84.geocentric(lon, lat)
	for i := range place {
		place[i] = (place[i] - d.t[i]) / d.scale
	}
	return d.own.geographic(lon, [3]float64{
		place[0] + d.r[2]*place[1] - d.r[1]*place[2],
		-d.r[2]*place[0] + place[1] + d.r[0]*place[2],
		d.r[1]*place[0] - d.r[0]*place[1] + place[2],
	})
}

// geocentric returns the place of a point at height 0.
func (l *ellipsoid) geocentric(lon, lat float64) [3]float64 {
	sin, cos := math.Sincos(lat * math.Pi / 180)
	sinLon, cosLon := math.Sincos(lon * math.Pi / 180)
	nu := l.a / math.Sqrt(1-l.e2*sin*sin)
	return [3]float64{nu * cos * cosLon, nu * cos * sinLon, nu * (1 - l.e2) * sin}
}

// geographic is the inverse (Bowring 1985, for heights near 0). The longitude is in the same turn
// as near.
func (l *ellipsoid) geographic(near float64, v [3]float64) (lon, lat float64) {
	radius := math.Hypot(v[0], v[1])
	minor := l.a * math.Sqrt(1-l.e2)
	sin, cos := math.Sincos(math.Atan2(v[2]*l.a, radius*minor))
	lat = math.Atan2(v[2]+l.e2/(1-l.e2)*minor*sin*sin*sin, radius-l.e2*l.a*cos*cos*cos)
	lon = math.Atan2(v[1], v[0]) * 180 / math.Pi
	return near + math.Remainder(lon-near, 360), lat * 180 / math.Pi
}
