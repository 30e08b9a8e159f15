package rasterize

import (
	"math"

	"github.com/paulmach/orb"

	"github.com/chaski-eo/chaski/internal/crs"
)

// Grid is a window of pixels on the ground.
type Grid struct {
	// Transform maps the corner of pixel (row, col) to the ground, like GDAL's geotransform:
	// X = t[0] + col·t[1] + row·t[2], Y = t[3] + col·t[4] + row·t[5].
	Transform     [6]float64
	Height, Width int
	// AllTouched covers all pixels that a line or the outline of a polygon passes through.
	AllTouched bool
}

// Spans calls do with the pixels that a geometry covers: row y, columns x0 to x1-1. A pixel may come
// more than once. Parts with infinite coordinates or NaN cover nothing. It reports false if the
// transform has no inverse.
func (g *Grid) Spans(shape orb.Geometry, do func(y, x0, x1 int)) bool {
	inverse, ok := invert(&g.Transform)
	if !ok || g.Height < 0 || g.Width < 0 {
		return false
	}
	drawing := drawer{Grid: g, inverse: inverse, do: do}
	drawing.geometry(shape)
	return true
}

// Pixels returns the function from places on the ground to pixels: (1.5, 0.5) is the middle of the second one of the
// first row. It reports false if the transform has no inverse.
func (g *Grid) Pixels() (func(orb.Point) orb.Point, bool) {
	inverse, ok := invert(&g.Transform)
	return func(p orb.Point) orb.Point { return orb.Point(crs.At(&inverse, p[0], p[1])) }, ok
}

// invert returns the transform from the ground to pixels. Without rotation it divides as GDAL does, so
// the last bits of places are the same.
func invert(t *[6]float64) (inverse [6]float64, ok bool) {
	if t[2] == 0 && t[4] == 0 {
		inverse = [6]float64{-t[0] / t[1], 1 / t[1], 0, -t[3] / t[5], 0, 1 / t[5]}
	} else {
		factor := 1 / (t[1]*t[5] - t[2]*t[4])
		inverse = [6]float64{(t[2]*t[3] - t[0]*t[5]) * factor, t[5] * factor, -t[2] * factor,
			(-t[1]*t[3] + t[0]*t[4]) * factor, -t[4] * factor, t[1] * factor}
	}
	for _, number := range inverse {
		if math.IsNaN(number) || math.IsInf(number, 0) {
			return inverse, false
		}
	}
	return inverse, true
}

// drawer draws into one grid.
type drawer struct {
	*Grid
	inverse [6]float64
	do      func(y, x0, x1 int)
	ends    []float64 // of spans of one row
}

// span calls do for the part of a span that lies in the grid.
func (d *drawer) span(y, x0, x1 int) {
	if x0, x1 = max(x0, 0), min(x1, d.Width); y >= 0 && y < d.Height && x0 < x1 {
		d.do(y, x0, x1)
	}
}

// limit bounds places in pixels: 2^29 lies past every grid, and products of two still fit into 64 bits.
const limit = 1 << 29

// places returns points in pixels, or false if one is not finite.
func (d *drawer) places(points []orb.Point) ([]orb.Point, bool) {
	list := make([]orb.Point, len(points))
	for i, point := range points {
		pixel := crs.At(&d.inverse, point[0], point[1])
		x, y := pixel[0], pixel[1]
		if x != x || y != y || math.IsInf(point[0], 0) || math.IsInf(point[1], 0) {
			return nil, false
		}
		list[i] = orb.Point{max(-limit, min(limit, x)), max(-limit, min(limit, y))}
	}
	return list, true
}

func (d *drawer) geometry(shape orb.Geometry) {
	switch kind := shape.(type) {
	case orb.Point:
		d.points(kind)
	case orb.MultiPoint:
		d.points(kind...)
	case orb.LineString:
		d.line(kind)
	case orb.MultiLineString:
		for _, line := range kind {
			d.line(line)
		}
	case orb.Ring:
		d.polygon(orb.Polygon{kind})
	case orb.Polygon:
		d.polygon(kind)
	case orb.MultiPolygon:
		for _, polygon := range kind {
			d.polygon(polygon)
		}
	case orb.Bound:
		d.polygon(kind.ToPolygon())
	case orb.Collection:
		for _, part := range kind {
			d.geometry(part)
		}
	}
}

func (d *drawer) points(points ...orb.Point) {
	for _, point := range points {
		if pixels, ok := d.places([]orb.Point{point}); ok {
			x := int(math.Floor(pixels[0][0]))
			d.span(int(math.Floor(pixels[0][1])), x, x+1)
		}
	}
}

func (d *drawer) line(l orb.LineString) {
	pixels, ok := d.places(l)
	if !ok {
		return
	}
	for i := 1; i < len(pixels); i++ {
		if d.AllTouched {
			d.touch(pixels[i-1], pixels[i], false)
		} else {
			d.bresenham(pixels[i-1], pixels[i])
		}
	}
}
