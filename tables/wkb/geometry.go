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
	switch kind {
	case point:
		if r.left() < size {
			return nil, r.corrupt("ends early")
		}
		x, y := r.xy(size)
		return orb.Point{x, y}, nil
	case lineString:
		p, err := r.points(size)
		return orb.LineString(p), err
	case polygon:
		return r.rings(size)
	}
	n, err := r.parts(depth)
	if err != nil {
		return nil, err
	}
	var parts orb.Collection
	for range n {
		part, err := r.geometry(depth + 1)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// points reads a count and as many points.
func (r *reader) points(size int) ([]orb.Point, error) {
	n, err := r.count(size)
	if err != nil {
		return nil, err
	}
	list := make([]orb.Point, n)
	for i := range list {
		list[i][0], list[i][1] = r.xy(size)
	}
	return list, nil
}

// rings reads the rings of a polygon.
func (r *reader) rings(size int) (orb.Geometry, error) {
	n, err := r.count(4)
	if err != nil {
		return nil, err
	}
	var rings orb.Polygon
	for range n {
		ring, err := r.points(size)
		if err != nil {
			return nil, err
		}
		rings = append(rings, ring)
	}
	return rings, nil
}

// Bounds returns the smallest box around a geometry, and false if it has no point: without coordinates, or with some
// that are not numbers only. It returns the same errors as Match. It does not allocate.
func Bounds(wkb []byte) (Box, bool, error) {
	r := reader{b: wkb, order: binary.LittleEndian}
	box := Box{math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)}
	if err := r.each(0, func(kind uint32, size int) error { return r.bounds(&box, kind, size) }); err != nil {
		return Box{}, false, err
	}
	return box, box.MinX <= box.MaxX && box.MinY <= box.MaxY, nil
}

// bounds widens a box by a point, line or polygon.
func (r *reader) bounds(b *Box, kind uint32, size int) error {
	switch kind {
	case point:
		if r.left() < size {
			return r.corrupt("ends early")
		}
		r.grow(b, 1, size)
		return nil
	case lineString:
		return r.growBy(b, size)
	}
	n, err := r.count(4)
	for ; n > 0 && err == nil; n-- {
		err = r.growBy(b, size)
	}
	return err
}

// growBy reads a count and widens a box by as many points.
func (r *reader) growBy(b *Box, size int) error {
	n, err := r.count(size)
	if err == nil {
		r.grow(b, n, size)
	}
	return err
}

// grow widens a box by n points. Coordinates that are not numbers, as an empty point has, do not count: comparisons
// with them are false.
func (r *reader) grow(b *Box, n, size int) {
	for range n {
		x, y := r.xy(size)
		if x < b.MinX {
			b.MinX = x
		}
		if x > b.MaxX {
			b.MaxX = x
		}
		if y < b.MinY {
			b.MinY = y
		}
		if y > b.MaxY {
			b.MaxY = y
		}
	}
}
