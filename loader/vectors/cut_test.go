package vectors

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/paulmach/orb"

	"github.com/chaski-eo/chaski/format/vector/rasterize"
	"github.com/chaski-eo/chaski/loader/shapes"
	"github.com/chaski-eo/chaski/shuffle"
)

// rectangle returns a polygon of whole numbers, so that all areas are exact.
func rectangle(x0, y0, x1, y1 float64) orb.Polygon {
	return orb.Polygon{{{x0, y0}, {x1, y0}, {x1, y1}, {x0, y1}, {x0, y0}}}
}

// overlap returns the part of a span that lies between 0 and n.
func overlap(from, to, n float64) (lo, hi float64) { return max(from, 0), min(to, n) }

// TestCutRectangles: of a rectangle, the box and the polygon in a window are those of its overlap with the window,
// whichever way the window is turned, and outlines have a positive area.
func TestCutRectangles(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	const side = 20
	for range 3000 {
		x0, y0 := float64(r.IntN(40)-15), float64(r.IntN(40)-15)
		x1, y1 := x0+1+float64(r.IntN(20)), y0+1+float64(r.IntN(20))
		turn := shuffle.Element(r.IntN(8))
		p := &picture{Grid: rasterize.Grid{Height: side, Width: side}, turn: turn}
		lowX, highX := overlap(x0, x1, side)
		lowY, highY := overlap(y0, y1, side)
		meets := lowX < highX && lowY < highY
		shape := rectangle(x0, y0, x1, y1)

		var boxes shapes.Cut
		if found := p.addBox(&boxes, shape); found != meets {
			t.Fatalf("%v: found %t, want %t", shape, found, meets)
		}
		var polygons shapes.Cut
		if found := p.addPolygons(&polygons, []orb.Polygon{shape}, 0); found != meets {
			t.Fatalf("%v: found %t, want %t", shape, found, meets)
		}
		if !meets {
			continue
		}
		ax, ay := p.turnPoint(orb.Point{lowX, lowY})
		bx, by := p.turnPoint(orb.Point{highX, highY})
		want := [4]float32{min(ax, bx), min(ay, by), max(ax, bx), max(ay, by)}
		if [4]float32(boxes.Coords) != want {
			t.Fatalf("%v, turned by %d: the box %v, want %v", shape, turn, boxes.Coords, want)
		}
		area, least, most := 0.0, [2]float32{side, side}, [2]float32{}
		for i := 0; i < len(polygons.Coords); i += 2 {
			at, next := polygons.Coords[i:i+2], polygons.Coords[(i+2)%len(polygons.Coords):][:2]
			area += (float64(at[0])*float64(next[1]) - float64(next[0])*float64(at[1])) / 2
			for axis := range least {
				least[axis], most[axis] = min(least[axis], at[axis]), max(most[axis], at[axis])
			}
		}
		if exact := (highX - lowX) * (highY - lowY); math.Abs(area-exact) > 1e-6 {
			t.Fatalf("%v, turned by %d: the area %v, want %v", shape, turn, area, exact)
		}
		if got := [4]float32{least[0], least[1], most[0], most[1]}; got != want {
			t.Fatalf("%v, turned by %d: vertices in %v, want %v", shape, turn, got, want)
		}
		if rings := polygons.Rings; len(rings) != shapes.RingWidth || rings[3] != 0 ||
			int(rings[2])*shapes.VertexWidth != len(polygons.Coords) {
			t.Fatalf("rings %v of %d numbers", rings, len(polygons.Coords))
		}
	}
}

// TestOtherShapes: points count where a pixel does, lines by what lies inside, and polygons of collections are parts of
// one shape.
func TestOtherShapes(t *testing.T) {
	p := &picture{Grid: rasterize.Grid{Height: 10, Width: 10}}
	for _, c := range []struct {
		shape orb.Geometry
		box   []float32
	}{
		{orb.Point{0, 9.5}, []float32{0, 9.5, 0, 9.5}},
		{orb.Point{10, 5}, nil},
		{orb.LineString{{-5, 5}, {5, 5}}, []float32{0, 5, 5, 5}},
		{orb.LineString{{-5, -5}, {-1, 20}}, nil},
		{orb.Collection{orb.Point{1, 2}, orb.Point{7, 3}, orb.Point{70, 3}}, []float32{1, 2, 7, 3}},
		{nil, nil},
	} {
		var cut shapes.Cut
		found := p.addBox(&cut, c.shape)
		if found != (c.box != nil) || found && [4]float32(cut.Coords) != [4]float32(c.box) {
			t.Errorf("%v: %v, want %v", c.shape, cut.Coords, c.box)
		}
	}
	both := orb.Collection{rectangle(1, 1, 2, 2), orb.Collection{rectangle(3, 3, 4, 4)}}
	if parts, other := polygonsOf(nil, both); len(parts) != 2 || other != "" {
		t.Errorf("%v, %q", parts, other)
	}
	if _, other := polygonsOf(nil, append(both, orb.Point{1, 1})); other != "Point" {
		t.Errorf("%q", other)
	}
}
