package vector

import (
	"encoding/binary"
	"math"

	"github.com/paulmach/orb"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tables/wkb"
)

// Types of geometries of FlatGeobuf, with the numbers of WKB.
const (
	flatUnknown = iota // each geometry says its own
	flatPoint
	flatLineString
	flatPolygon
	flatMultiPoint
	flatMultiLineString
	flatMultiPolygon
	flatCollection
)

// flatFeature returns the geometry and the properties of a feature, without the four bytes of its size. The geometry
// is nil if the feature has none. Multi-geometries are collections, as package wkb has them. It is at most nine times
// as large as the bytes: a polygon without points takes 8 of them, a slice 24, and its place in a list that grows 48.
func flatFeature(b []byte, kind uint64) (orb.Geometry, []byte, error) {
	flatBuffer := newFlatBuffer(b, 1)
	root := flatBuffer.root()
	properties := flatBuffer.bytes(root, 1)
	var shape orb.Geometry
	if t, ok := flatBuffer.child(root, 0); ok {
		shape = flatBuffer.geometry(t, kind, 0)
	}
	return shape, properties, flatBuffer.err
}

// geometry returns the geometry of a table: nil for a point without coordinates, and after an error.
func (f *flatBuffer) geometry(t flatTable, kind uint64, depth int) orb.Geometry {
	if kind == flatUnknown {
		kind = f.number(t, 6, 1, flatUnknown)
	}
	if f.err == nil && kind > flatCollection {
		f.err = fault.New(fault.Unsupported, "geometry", int64(t.at), "type %d: curves and surfaces are not read", kind)
	}
	if f.err != nil {
		return nil
	}
	switch kind {
	case flatPoint:
		if p := f.points(t); len(p) > 0 {
			return p[0]
		}
		return nil
	case flatLineString:
		return orb.LineString(f.points(t))
	case flatPolygon:
		var rings orb.Polygon
		for _, r := range f.lines(t) {
			rings = append(rings, r)
		}
		return rings
	}
	var shapes orb.Collection
	switch kind {
	case flatMultiPoint:
		for _, p := range f.points(t) {
			shapes = append(shapes, p)
		}
	case flatMultiLineString:
		for _, l := range f.lines(t) {
			shapes = append(shapes, orb.LineString(l))
		}
	case flatMultiPolygon:
		return f.parts(t, flatPolygon, depth)
	case flatCollection:
		return f.parts(t, flatUnknown, depth)
	default:
		f.fail(t.at, "a geometry without a type")
	}
	return shapes
}

// parts returns the geometries that a table consists of.
func (f *flatBuffer) parts(t flatTable, kind uint64, depth int) (all orb.Collection) {
	if depth == maxNested {
		f.err = fault.New(fault.Limit, "geometry", int64(t.at), "collections %d deep", depth)
	}
	pos, n := f.vector(t, 7, 4)
	for i := range n {
		part := f.geometry(f.table(f.follow(pos+4*i)), kind, depth+1)
		if f.err != nil {
			return nil
		}
		if part != nil {
			all = append(all, part)
		}
	}
	return all
}

// points returns the points of a table.
func (f *flatBuffer) points(t flatTable) []orb.Point {
	pos, n := f.vector(t, 1, 8)
	if n%2 != 0 {
		f.fail(pos, "a point without y")
	}
	if f.err != nil {
		return nil
	}
	list := make([]orb.Point, n/2)
	for i := range list {
		list[i][0] = math.Float64frombits(binary.LittleEndian.Uint64(f.b[pos+16*i:]))
		list[i][1] = math.Float64frombits(binary.LittleEndian.Uint64(f.b[pos+16*i+8:]))
	}
	return list
}

// lines returns the points of a table, divided where its ends say. Without ends they are one line.
func (f *flatBuffer) lines(t flatTable) (all []orb.Ring) {
	points := f.points(t)
	pos, n := f.vector(t, 0, 4)
	if n == 0 && len(points) > 0 {
		return []orb.Ring{points}
	}
	start := 0
	for i := range n {
		end := int(binary.LittleEndian.Uint32(f.b[pos+4*i:]))
		if end < start || end > len(points) {
			f.fail(pos+4*i, "the ends of lines are not in order")
			return nil
		}
		all = append(all, points[start:end:end])
		start = end
	}
	if start != len(points) {
		f.fail(pos, "points after the last line")
	}
	return all
}

// growBox widens a box by a geometry. Coordinates that are not numbers do not count: comparisons with them are false.
func growBox(b *wkb.Box, g orb.Geometry) {
	line := func(points []orb.Point) {
		for _, point := range points {
			if point[0] < b.MinX {
				b.MinX = point[0]
			}
			if point[0] > b.MaxX {
				b.MaxX = point[0]
			}
			if point[1] < b.MinY {
				b.MinY = point[1]
			}
			if point[1] > b.MaxY {
				b.MaxY = point[1]
			}
		}
	}
	switch g := g.(type) {
	case orb.Point:
		line([]orb.Point{g})
	case orb.LineString:
		line(g)
	case orb.Polygon:
		for _, r := range g {
			line(r)
		}
	case orb.Collection:
		for _, part := range g {
			growBox(b, part)
		}
	}
}
