package wkb

import (
	"encoding/binary"
	"math"

	"github.com/paulmach/orb"
)

// Geometry returns a geometry with its x and y. It returns the same errors as Match, and ignores bytes after the
// geometry, as Match does. It is at most six times as large as the bytes: a ring takes 4 of them at least, and a slice
// 24.
func Geometry(wkb []byte) (orb.Geometry, error) {
	return (&reader{b: wkb, order: binary.LittleEndian}).geometry(0)
}

func (r *reader) geometry(depth int) (orb.Geometry, error) {
	kind, size, err := r.head()
	if err != nil {
		return nil, err
	}
	if kind <= polygon {
		var rings orb.Polygon
		err := r.rings(kind, size, func(p positions) {
			ring := make(orb.Ring, p.len())
			for i := range ring {
				ring[i][0], ring[i][1] = p.at(i)
			}
			rings = append(rings, ring)
		})
		switch {
		case err != nil:
			return nil, err
		case kind == point:
			return rings[0][0], nil
		case kind == lineString:
			return orb.LineString(rings[0]), nil
		}
		return rings, nil
	}
	left, err := r.parts(depth)
	var parts orb.Collection
	for ; left > 0 && err == nil; left-- {
		var part orb.Geometry
		part, err = r.geometry(depth + 1)
		parts = append(parts, part)
	}
	if err != nil {
		return nil, err
	}
	return parts, nil
}

// noBox has no point.
var noBox = Box{math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)}

// Bounds returns the smallest box around a geometry, and false if all its points lack a number. It returns the same
// errors as Match.
func Bounds(wkb []byte) (Box, bool, error) {
	r, box := reader{b: wkb, order: binary.LittleEndian}, noBox
	err := r.each(0, func(kind uint32, size int) error { return r.rings(kind, size, box.grow) })
	if err != nil {
		return Box{}, false, err
	}
	return box, box.MinX <= box.MaxX && box.MinY <= box.MaxY, nil
}

// grow widens a box by positions. Coordinates of NaN, as an empty point has, do not count.
func (b *Box) grow(p positions) {
	for i := range p.len() {
		x, y := p.at(i)
		if x == x {
			b.MinX, b.MaxX = min(b.MinX, x), max(b.MaxX, x)
		}
		if y == y {
			b.MinY, b.MaxY = min(b.MinY, y), max(b.MaxY, y)
		}
	}
}
