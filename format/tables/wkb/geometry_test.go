package wkb

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/paulmach/orb"
	orbwkb "github.com/paulmach/orb/encoding/wkb"

	"github.com/chaski-eo/chaski/fault"
)

// someGeometry returns a random geometry of any type.
func someGeometry(rnd *rand.Rand, depth int) orb.Geometry {
	points := func() []orb.Point {
		list := make([]orb.Point, rnd.IntN(5))
		for i := range list {
			list[i] = orb.Point{rnd.NormFloat64(), rnd.NormFloat64() * 1e6}
		}
		return list
	}
	rings := func() orb.Polygon {
		p := make(orb.Polygon, 1+rnd.IntN(3))
		for i := range p {
			p[i] = append(orb.Ring(points()), orb.Point{1, 2})
		}
		return p
	}
	kind := rnd.IntN(7)
	if depth > 2 {
		kind = rnd.IntN(3)
	}
	switch kind {
	case 0:
		return orb.Point{rnd.Float64(), -rnd.Float64()}
	case 1:
		return orb.LineString(points())
	case 2:
		return rings()
	case 3:
		return orb.MultiPoint(points())
	case 4:
		return orb.MultiLineString{points(), points()}
	case 5:
		return orb.MultiPolygon{rings(), rings()}
	}
	return orb.Collection{someGeometry(rnd, depth+1), someGeometry(rnd, depth+1)}
}

// asCollections turns multi-geometries into collections, as Geometry returns them.
func asCollections(g orb.Geometry) orb.Geometry {
	var out orb.Collection
	switch g := g.(type) {
	case orb.MultiPoint:
		for _, p := range g {
			out = append(out, p)
		}
	case orb.MultiLineString:
		for _, l := range g {
			out = append(out, l)
		}
	case orb.MultiPolygon:
		for _, p := range g {
			out = append(out, p)
		}
	case orb.Collection:
		for _, p := range g {
			out = append(out, asCollections(p))
		}
	default:
		return g
	}
	return out
}

// boundOf returns the bound of all rings; orb takes holes to lie inside of the first one.
func boundOf(g orb.Geometry) orb.Bound {
	b := orb.MultiPoint(nil).Bound() // empty
	switch g := g.(type) {
	case orb.Polygon:
		for _, r := range g {
			b = b.Union(r.Bound())
		}
		return b
	case orb.Collection:
		for _, p := range g {
			b = b.Union(boundOf(p))
		}
		return b
	}
	return g.Bound()
}

// TestGeometry promises that geometries, and the boxes around them, are those that orb reads and computes.
func TestGeometry(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 11))
	for range 2000 {
		want := someGeometry(rnd, 0)
		var order binary.ByteOrder = binary.LittleEndian
		if rnd.IntN(2) == 0 {
			order = binary.BigEndian
		}
		b, err := orbwkb.Marshal(want, order)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Geometry(b)
		if err != nil || !reflect.DeepEqual(got, asCollections(want)) {
			t.Fatalf("got %v, %v; want %v", got, err, want)
		}
		box, ok, err := Bounds(b)
		bound := boundOf(asCollections(want))
		if empty := bound.IsEmpty(); err != nil || ok == empty {
			t.Fatalf("box of %v: %v, %v", want, ok, err)
		} else if !empty && box != (Box{bound.Min[0], bound.Min[1], bound.Max[0], bound.Max[1]}) {
			t.Fatalf("box of %v: %v, want %v", want, box, bound)
		}
	}
}

// TestGeometryOfFlat promises that z and m do not count, and that empty points have no box.
func TestGeometryOfFlat(t *testing.T) {
	for dims := 2; dims <= 4; dims++ {
		b := (&enc{order: binary.BigEndian, dims: dims}).polygon(rect(1, 2, 3, 4)).b
		got, err := Geometry(b)
		want := orb.Polygon{{{1, 2}, {3, 2}, {3, 4}, {1, 4}, {1, 2}}}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%d dimensions: %v, %v", dims, got, err)
		}
		if box, ok, err := Bounds(b); err != nil || !ok || box != (Box{1, 2, 3, 4}) {
			t.Errorf("%d dimensions: %v, %v, %v", dims, box, ok, err)
		}
	}
	const flagZ, flagM = 1 << 31, 1 << 30
	for code, dims := range map[uint32]int{0: 2, 1000: 3, 2000: 3, 3000: 4, flagZ: 3, flagM: 3, flagZ | flagM: 4,
		flagZ | 1000: 4, 4000: 0, flagZ | 3000: 0, flagM | 4000: 0} { // 0 for none
		line := le().head(code + lineString).count(2)
		line.dims = dims
		got, err := Geometry(line.at(xy{1, 2}, xy{3, 4}).b)
		if refused := fault.KindOf(err) == fault.Unsupported; refused != (dims == 0) ||
			!refused && !reflect.DeepEqual(got, orb.LineString{{1, 2}, {3, 4}}) {
			t.Errorf("type %d: %v, %v", code+lineString, got, err)
		}
	}
	if box, ok, err := Bounds(pointOf(xy{math.NaN(), math.NaN()})); ok || err != nil {
		t.Errorf("an empty point has the box %v, %v", box, err)
	}
}

// FuzzGeometry: bytes are refused with a kind, by Geometry as by Bounds, or both agree about the box.
func FuzzGeometry(f *testing.F) {
	f.Add(pointOf(xy{1, 2}))
	f.Add(lineOf(xy{1, 2}, xy{3, 4}))
	f.Add(polygonOf(rect(1, 2, 3, 4), rect(1.5, 2.5, 2, 3)))
	f.Add(le().head(collection).count(2).with(pointOf(xy{1, 2}), lineOf(xy{0, 1}, xy{2, 3})))
	f.Add(le().head(multiPolygon).count(1).with(polygonOf(rect(1, 2, 3, 4))))
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := Geometry(b)
		box, ok, berr := Bounds(b)
		if fault.KindOf(err) != fault.KindOf(berr) || err != nil && fault.KindOf(err) == 0 {
			t.Fatalf("%v, but the box: %v", err, berr)
		}
		if err != nil || !ok {
			return
		}
		any := false
		var visit func(g orb.Geometry)
		visit = func(g orb.Geometry) {
			switch g := g.(type) {
			case orb.Point:
				any = any || g[0] == box.MinX
			case orb.LineString:
				for _, p := range g {
					visit(p)
				}
			case orb.Polygon:
				for _, r := range g {
					visit(orb.LineString(r))
				}
			case orb.Collection:
				for _, p := range g {
					visit(p)
				}
			}
		}
		if visit(g); !any {
			t.Fatalf("no point of %v at the edge of its box %v", g, box)
		}
	})
}
