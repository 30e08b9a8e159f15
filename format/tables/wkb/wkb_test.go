package wkb

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/tools/testkit/taken"
)

// xy is a position.
type xy [2]float64

// enc builds geometries.
type enc struct {
	order binary.AppendByteOrder
	dims  int
	b     []byte
}

func (e *enc) head(kind uint32) *enc {
	code := kind
	switch e.dims {
	case 3:
		code += 1000
	case 4:
		code += 3000
	}
	first := byte(1)
	if e.order == binary.BigEndian {
		first = 0
	}
	e.b = e.order.AppendUint32(append(e.b, first), code)
	return e
}

func (e *enc) count(n int) *enc {
	e.b = e.order.AppendUint32(e.b, uint32(n))
	return e
}

func (e *enc) at(points ...xy) *enc {
	for _, p := range points {
		for d := range e.dims {
			v := 1e9 // z and m must not count
			if d < 2 {
				v = p[d]
			}
			e.b = e.order.AppendUint64(e.b, math.Float64bits(v))
		}
	}
	return e
}

func le() *enc { return &enc{order: binary.LittleEndian, dims: 2} }

func pointOf(p xy) []byte { return le().head(point).at(p).b }

func lineOf(p ...xy) []byte { return le().head(lineString).count(len(p)).at(p...).b }

func polygonOf(rings ...[]xy) []byte { return le().polygon(rings...).b }

func (e *enc) polygon(rings ...[]xy) *enc {
	e.head(polygon).count(len(rings))
	for _, r := range rings {
		e.count(len(r)).at(r...)
	}
	return e
}

func rect(x0, y0, x1, y1 float64) []xy { return []xy{{x0, y0}, {x1, y0}, {x1, y1}, {x0, y1}, {x0, y0}} }

// TestRules compares cases drawn by hand with what DE-9IM says of them and the box (0, 0) to (10, 10).
func TestRules(t *testing.T) {
	box := NewBox(10, 0, 0, 10)
	nan := math.NaN()
	for _, c := range []struct {
		name               string
		wkb                []byte
		intersects, within bool
	}{
		{"point inside", pointOf(xy{5, 5}), true, true},
		{"point on the edge", pointOf(xy{10, 5}), true, false},
		{"point on the left", pointOf(xy{0, 5}), true, false},
		{"point on the top", pointOf(xy{5, 10}), true, false},
		{"point on the bottom", pointOf(xy{5, 0}), true, false},
		{"point on a corner", pointOf(xy{0, 0}), true, false},
		{"point outside", pointOf(xy{11, 5}), false, false},
		{"empty point", pointOf(xy{nan, nan}), false, false},
		{"line inside", lineOf(xy{1, 1}, xy{9, 9}), true, true},
		{"line across, no vertex inside", lineOf(xy{-5, 5}, xy{15, 5}), true, false},
		{"line that passes a corner by", lineOf(xy{-2, 1}, xy{1, -2.1}), false, false},
		{"line through a corner", lineOf(xy{-1, 1}, xy{1, -1}), true, false},
		{"line along the edge", lineOf(xy{2, 0}, xy{8, 0}), true, false},
		{"line from edge to edge", lineOf(xy{0, 0}, xy{10, 10}), true, true},
		{"line from side to side", lineOf(xy{10, 6}, xy{0, 8}), true, true},
		{"empty line", lineOf(), false, false},
		{"polygon inside", polygonOf(rect(1, 1, 2, 2)), true, true},
		{"polygon that is the box", polygonOf(rect(0, 0, 10, 10)), true, true},
		{"polygon around the box", polygonOf(rect(-5, -5, 15, 15)), true, false},
		{"polygon over a corner", polygonOf(rect(8, 8, 12, 12)), true, false},
		{"polygon that touches", polygonOf(rect(10, 2, 12, 4)), true, false},
		{"flat polygon on the left", polygonOf([]xy{{0, 2}, {0, 8}, {0, 2}}), true, false},
		{"flat polygon on the bottom", polygonOf([]xy{{2, 0}, {8, 0}, {2, 0}}), true, false},
		{"polygon beside", polygonOf(rect(11, 2, 12, 4)), false, false},
		{"polygon beside with a corner as high as one of the box", polygonOf([]xy{{12, -2}, {14, 0}, {12, 2}}), false,
			false},
		{"polygon whose last point touches the right", polygonOf([]xy{{12, 2}, {12, 4}, {10, 3}}), true, false},
		{"polygon whose last point touches the left", polygonOf([]xy{{-2, 2}, {-2, 4}, {0, 3}}), true, false},
		{"polygon whose last point touches the top", polygonOf([]xy{{2, 12}, {4, 12}, {3, 10}}), true, false},
		{"polygon whose last point touches the bottom", polygonOf([]xy{{2, -2}, {4, -2}, {3, 0}}), true, false},
		{"polygon whose first point touches", polygonOf([]xy{{3, 0}, {2, -2}, {4, -2}}), true, false},
		{"polygon of empty rings", polygonOf(nil), false, false},
		{"polygon of several empty rings", polygonOf(nil, nil, nil), false, false},
		{"box in a hole", polygonOf(rect(-5, -5, 15, 15), rect(-1, -1, 11, 11)), false, false},
		{"box over the edge of a hole", polygonOf(rect(-5, -5, 15, 15), rect(3, 3, 11, 11)), true, false},
		{"triangle whose box only overlaps", polygonOf([]xy{{10, 30}, {30, 10}, {30, 30}, {10, 30}}), false, false},
		{"slant over the box", polygonOf([]xy{{-10, 5}, {5, -10}, {20, 5}, {5, 20}, {-10, 5}}), true, false},
		{"empty polygon", polygonOf(), false, false},
		{"points, one inside", le().head(multiPoint).count(2).with(pointOf(xy{20, 20}), pointOf(xy{5, 5})), true,
			false},
		{"polygons, one around", le().head(multiPolygon).count(2).with(polygonOf(rect(20, 20, 21, 21)),
			polygonOf(rect(-5, -5, 15, 15))), true, false},
		{"collection inside", le().head(collection).count(2).with(pointOf(xy{0, 0}), lineOf(xy{1, 1}, xy{2, 2})),
			true, true},
		{"empty collection", le().head(collection).count(0).b, false, false},
		{"big-endian", (&enc{order: binary.BigEndian, dims: 2}).polygon(rect(1, 1, 2, 2)).b, true, true},
		{"with z", (&enc{order: binary.LittleEndian, dims: 3}).polygon(rect(1, 1, 2, 2)).b, true, true},
		{"with z and m", (&enc{order: binary.BigEndian, dims: 4}).polygon(rect(11, 1, 12, 2)).b, false, false},
		{"EWKB with SRID and Z", ewkb(xy{5, 5}), true, true},
	} {
		for rule, want := range map[column.Rule]bool{column.Intersects: c.intersects, column.Within: c.within} {
			part := le().head(collection).count(1).with(c.wkb)
			for shape, b := range map[string][]byte{"alone": c.wkb, "as a part": part} {
				if got, err := Match(b, box, rule); got != want || err != nil {
					t.Errorf("%s %s, rule %d: %v, %v, want %v", c.name, shape, rule, got, err, want)
				}
			}
		}
	}
}

func (e *enc) with(parts ...[]byte) []byte {
	for _, p := range parts {
		e.b = append(e.b, p...)
	}
	return e.b
}

func ewkb(p xy) []byte {
	b := binary.LittleEndian.AppendUint32([]byte{1}, point|1<<31|1<<29)
	e := &enc{order: binary.LittleEndian, dims: 3, b: binary.LittleEndian.AppendUint32(b, 4326)}
	return e.at(p).b
}

// slowIntersects is the definition by orientations: a vertex of one is inside the other, or edges cross.
func slowIntersects(ring []xy, b Box) bool {
	corners := rect(b.MinX, b.MinY, b.MaxX, b.MaxY)
	for _, p := range ring {
		if p[0] >= b.MinX && p[0] <= b.MaxX && p[1] >= b.MinY && p[1] <= b.MaxY {
			return true
		}
	}
	if winding(ring, corners[0]) != 0 {
		return true
	}
	for i := range len(ring) - 1 {
		for k := range len(corners) - 1 {
			if cross(ring[i], ring[i+1], corners[k], corners[k+1]) {
				return true
			}
		}
	}
	return false
}

func side(a, b, c xy) float64 { return (b[0]-a[0])*(c[1]-a[1]) - (b[1]-a[1])*(c[0]-a[0]) }

func cross(a, b, c, d xy) bool {
	return side(a, b, c)*side(a, b, d) <= 0 && side(c, d, a)*side(c, d, b) <= 0
}

// winding is how often a ring turns around a point, by angles.
func winding(ring []xy, p xy) int {
	sum := 0.0
	for i := range len(ring) - 1 {
		a := math.Atan2(ring[i][1]-p[1], ring[i][0]-p[0])
		b := math.Atan2(ring[i+1][1]-p[1], ring[i+1][0]-p[0])
		d := math.Remainder(b-a, 2*math.Pi)
		sum += d
	}
	return int(math.Round(sum / (2 * math.Pi)))
}

// TestAgainstOrientations compares random simple polygons (stars around a centre) and boxes.
func TestAgainstOrientations(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	hits := 0
	const n = 20000
	for range n {
		cx, cy, k := rng.Float64()*20-10, rng.Float64()*20-10, 3+rng.IntN(8)
		var ring []xy
		for i := range k {
			a, r := 2*math.Pi*float64(i)/float64(k), rng.Float64()*8+0.1
			ring = append(ring, xy{cx + r*math.Cos(a), cy + r*math.Sin(a)})
		}
		ring = append(ring, ring[0])
		box := NewBox(rng.Float64()*20-10, rng.Float64()*20-10, rng.Float64()*20-10, rng.Float64()*20-10)
		want := slowIntersects(ring, box)
		ring = ring[:len(ring)-rng.IntN(2)] // closed or not
		got, err := Match(polygonOf(ring), box, column.Intersects)
		if err != nil || got != want {
			t.Fatalf("%v in %v: %v, %v, want %v", ring, box, got, err, want)
		}
		if got {
			hits++
		}
		// The same without the shortcut for polygons of one ring.
		several := le().head(multiPolygon).count(1).with(polygonOf(ring))
		if got, err := Match(several, box, column.Intersects); err != nil || got != want {
			t.Fatalf("as one of several: %v, %v, want %v", got, err, want)
		}
	}
	if hits < n/10 || hits > n*9/10 {
		t.Errorf("%d of %d match: the cases say little", hits, n)
	}
}

// TestConverted compares stars in another CRS with what they are in degrees. The conversion is linear, so pieces of an
// edge lie on it.
func TestConverted(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	to := func(x, y float64) (float64, float64) { return x/1024 - 3, 5 - y/512 }
	hits := 0
	for range 2000 {
		box := NewBox(rng.Float64()*20-10, rng.Float64()*20-10, rng.Float64()*20-10, rng.Float64()*20-10)
		place := &Place{Boxes: []Box{box}}
		var ring, degrees []xy
		cx, cy := rng.Float64()*20000-7000, rng.Float64()*10000-2500
		for i := range 7 {
			a, r := 2*math.Pi*float64(i)/7, rng.Float64()*8000+100
			ring = append(ring, xy{cx + r*math.Cos(a), cy + r*math.Sin(a)})
		}
		for _, p := range append(ring, ring[0]) {
			lon, lat := to(p[0], p[1])
			degrees = append(degrees, xy{lon, lat})
		}
		want := slowIntersects(degrees, box)
		if got, err := place.Match(polygonOf(append(ring, ring[0])), column.Intersects, to); err != nil || got != want {
			t.Fatalf("%v in %v: %v, %v, want %v", degrees, box, got, err, want)
		}
		if want {
			hits++
		}
		lon, lat := degrees[0][0], degrees[0][1]
		in := lon > box.MinX && lon < box.MaxX && lat > box.MinY && lat < box.MaxY
		if got, err := place.Match(pointOf(ring[0]), column.Within, to); err != nil || got != in {
			t.Fatalf("%v in %v: %v, %v, want %v", degrees[0], box, got, err, in)
		}
	}
	if hits < 200 || hits > 1800 {
		t.Errorf("%d of 2000 match: the cases say little", hits)
	}
}

// TestAroundTheEarth: an edge of 360 degrees and more goes around the Earth, a shorter one of over 180 degrees across
// the antimeridian.
func TestAroundTheEarth(t *testing.T) {
	for half, want := range map[float64]bool{90: true, 90.25: false, 179.75: false, 180: true, 180.25: true} {
		if got, err := Match(lineOf(xy{-half, 0}, xy{half, 0}), NewBox(-1, -1, 1, 1), column.Intersects); got != want ||
			err != nil {
			t.Errorf("%v degrees at 0: %v, %v, want %v", 2*half, got, err, want)
		}
	}
}

// TestLineAroundThePole: a line around a pole does not reach it, as a polygon does.
func TestLineAroundThePole(t *testing.T) {
	ring := []xy{{0, 60}, {120, 60}, {-120, 60}, {0, 60}}
	for want, b := range map[bool][]byte{false: lineOf(ring...), true: polygonOf(ring)} {
		if got, err := Match(b, NewBox(10, 85, 20, 90), column.Intersects); got != want || err != nil {
			t.Errorf("%x: %v, %v, want %v", b, got, err, want)
		}
	}
}

// TestOverlaps: boxes that touch have a point in common.
func TestOverlaps(t *testing.T) {
	box := Box{0, 0, 10, 10}
	for other, want := range map[Box]bool{{10, 3, 12, 4}: true, {-2, 3, 0, 4}: true, {3, 10, 4, 12}: true,
		{3, -2, 4, 0}: true, {10.5, 3, 12, 4}: false, {-2, 3, -0.5, 4}: false, {3, 10.5, 4, 12}: false,
		{3, -2, 4, -0.5}: false} {
		if box.Overlaps(other) != want || other.Overlaps(box) != want {
			t.Errorf("%v and %v: want %v", box, other, want)
		}
	}
}

// TestCut: a geometry that ends early is corrupt, wherever it ends.
func TestCut(t *testing.T) {
	for _, b := range [][]byte{pointOf(xy{1, 2}), lineOf(xy{1, 2}, xy{3, 4}),
		polygonOf(rect(0, 0, 3, 3), rect(1, 1, 2, 2)), ewkb(xy{1, 2}),
		le().head(multiPoint).count(2).with(pointOf(xy{1, 1}), pointOf(xy{2, 1})),
		le().head(collection).count(1).with(lineOf(xy{0, 0}, xy{1, 1}))} {
		for n := range b {
			_, matched := Match(b[:n], NewBox(0, 0, 9, 9), column.Within)
			_, read := Geometry(b[:n])
			_, _, bounded := Bounds(b[:n])
			for _, err := range []error{matched, read, bounded} {
				if fault.KindOf(err) != fault.Corrupt {
					t.Errorf("%d bytes of %x: %v, %v, %v", n, b, matched, read, bounded)
					break
				}
			}
		}
	}
}

func TestBadGeometries(t *testing.T) {
	deep := []byte{}
	for range 40 {
		deep = append(deep, le().head(collection).count(1).b...)
	}
	huge := le().head(lineString).count(math.MaxInt32).b
	for name, c := range map[string]struct {
		b    []byte
		kind fault.Kind
	}{
		"nothing": {nil, fault.Corrupt}, "byte order": {[]byte{2, 1, 0, 0, 0}, fault.Corrupt},
		"cut point": {pointOf(xy{1, 2})[:20], fault.Corrupt}, "a count past the end": {huge, fault.Corrupt},
		"a curve": {le().head(8).b, fault.Unsupported}, "type 0": {le().head(0).b, fault.Unsupported},
		"order of an apart polygon": {append([]byte{2}, polygonOf(rect(5, 5, 6, 6))[1:]...), fault.Corrupt},
		"order of a point":          {append([]byte{2}, pointOf(xy{5, 5})[1:]...), fault.Corrupt},
		"apart, a ring is missing":  {polygonOf(rect(5, 5, 6, 6), nil)[:13+5*16], fault.Corrupt},
		"too deep":                  {deep, fault.Limit},
		"rings past the end":        {le().head(polygon).count(1 << 30).b, fault.Corrupt},
	} {
		if _, err := Match(c.b, NewBox(0, 0, 1, 1), column.Intersects); fault.KindOf(err) != c.kind {
			t.Errorf("%s: %v, want %v", name, err, c.kind)
		}
	}
}

// TestTypes: the seven types of simple features are read, with z and m by a thousand each, and no others; of a polygon
// that is far away each byte counts.
func TestTypes(t *testing.T) {
	box, rest := NewBox(0, 0, 1, 1), make([]byte, 64) // the coordinates of a point, or no parts
	refused := func(err error, text string) bool {
		return fault.KindOf(err) == fault.Unsupported && strings.Contains(err.Error(), text)
	}
	for code := range uint32(5000) {
		b := append(binary.LittleEndian.AppendUint32([]byte{1}, code), rest...)
		kind := code % 1000
		known, what := kind >= point && kind <= collection && code < 4000, fmt.Sprintf("at 1: type %d:", code)
		if _, err := Match(b, box, column.Intersects); known != (err == nil) || !known && !refused(err, what) {
			t.Errorf("type %d: %v", code, err)
		}
		if known && kind != point {
			what = fmt.Sprintf("type %d is not a point", kind)
		}
		if _, _, err := Point(b); (known && kind == point) != (err == nil) || err != nil && !refused(err, what) {
			t.Errorf("the point of type %d: %v", code, err)
		}
	}
	for _, want := range []xy{{1, -2}, {math.Inf(1), 1e-300}} {
		if x, y, err := Point(AppendPoint(nil, want[0], want[1])); err != nil || x != want[0] || y != want[1] {
			t.Errorf("%v became %v, %v: %v", want, x, y, err)
		}
	}
	for _, half := range []xy{{1, math.NaN()}, {math.NaN(), 1}} {
		if b, ok, err := Bounds(pointOf(half)); ok || err != nil {
			t.Errorf("%v has the bounds %v: %v", half, b, err)
		}
	}
	// Only the edge that closes the ring goes across the antimeridian.
	around := polygonOf([]xy{{-120, 60}, {0, 60}, {120, 60}})
	if hit, err := Match(around, NewBox(10, 85, 20, 90), column.Intersects); !hit || err != nil {
		t.Errorf("a polygon around the pole: %v, %v", hit, err)
	}
	far := polygonOf(rect(20, 20, 21, 21))
	for n := range far {
		if _, err := Match(far[:n], box, column.Within); fault.KindOf(err) != fault.Corrupt {
			t.Errorf("%d bytes of a polygon: %v", n, err)
		}
	}
}

func TestMatchDoesNotAllocate(t *testing.T) {
	g := [][]byte{pointOf(xy{5, 5}), polygonOf(rect(8, 8, 12, 12)), polygonOf(rect(-5, -5, 15, 15), rect(3, 3, 11, 11))}
	box := NewBox(0, 0, 10, 10)
	if n := testing.AllocsPerRun(100, func() {
		for _, b := range g {
			if ok, err := Match(b, box, column.Intersects); !ok || err != nil {
				t.Error(ok, err)
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzMatch promises that no input panics, that a geometry within the box also intersects it, and that a box around
// everything excludes nothing.
func FuzzMatch(f *testing.F) {
	for _, b := range [][]byte{
		pointOf(xy{1, 2}), lineOf(xy{1, 2}, xy{3, 4}), polygonOf(rect(0, 0, 3, 3), rect(1, 1, 2, 2)), ewkb(xy{1, 2}),
		le().head(multiPoint).count(1).with(pointOf(xy{1, 1})),
		le().head(collection).count(1).with(lineOf(xy{0, 0}, xy{1, 1})),
		(&enc{order: binary.BigEndian, dims: 4}).polygon(rect(0, 0, 1, 1)).b,
	} {
		f.Add(b, 0.0, 0.0, 10.0, 10.0)
	}
	f.Fuzz(func(t *testing.T, b []byte, x0, y0, x1, y1 float64) {
		box := NewBox(x0, y0, x1, y1)
		hit, err := Match(b, box, column.Intersects)
		in, err2 := Match(b, box, column.Within)
		if (err == nil) != (err2 == nil) {
			t.Fatal(err, err2)
		}
		part := le().head(collection).count(1).with(b) // for which there are no shortcuts
		if alone, _ := Match(part, box, column.Intersects); alone != hit {
			t.Fatalf("%x in %v: %v, but %v as part of a collection", b, box, hit, alone)
		}
		if in && !hit {
			t.Fatalf("%x within %v, but does not intersect it", b, box)
		}
	})
}

// FuzzPoint promises that bytes are a point of exactly their length, or refused with a kind.
func FuzzPoint(f *testing.F) {
	point := func(order binary.AppendByteOrder, first byte, kind uint32, srid bool) []byte {
		b := order.AppendUint32([]byte{first}, kind)
		if srid {
			b = order.AppendUint32(b, 4326)
		}
		b = order.AppendUint64(b, math.Float64bits(-62.75))
		return order.AppendUint64(b, math.Float64bits(39.25))
	}
	good := [][]byte{
		point(binary.LittleEndian, 1, 1, false), point(binary.BigEndian, 0, 1, false),
		point(binary.LittleEndian, 1, 1|0x20000000, true),
		append(point(binary.LittleEndian, 1, 1001, false), make([]byte, 8)...),
	}
	for _, b := range good {
		if x, y, err := Point(b); err != nil || x != -62.75 || y != 39.25 {
			f.Errorf("% x: %v, %v, %v", b, x, y, err)
		}
		f.Add(b)
	}
	f.Add(point(binary.LittleEndian, 1, 3, false)) // a polygon
	f.Add(point(binary.LittleEndian, 1, 1|0x20000000, false))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, _, err := Point(b); (err == nil) == (fault.KindOf(err) != 0) || err == nil && len(b) < 21 {
			t.Errorf("% x: %v", b, err)
		}
	})
}

// TestText promises that well-known text and binary match alike.
func TestText(t *testing.T) {
	nowhere := xy{math.NaN(), math.NaN()}
	for text, want := range map[string][]byte{
		"POINT (1 -2.5e1)":                                     pointOf(xy{1, -25}),
		"POINT (+1 +2.5E+1)":                                   pointOf(xy{1, 25}),
		" point(1 2)\t ":                                       pointOf(xy{1, 2}),
		"SRID=4326;POINT Z (1 2 3)":                            pointOf(xy{1, 2}),
		"POINTZM(1 2 3 4)":                                     pointOf(xy{1, 2}),
		"LINESTRING (0 0,1 1 , 2 0)":                           lineOf(xy{0, 0}, xy{1, 1}, xy{2, 0}),
		"LINESTRING EMPTY":                                     lineOf(),
		"POLYGON ((0 0, 3 0, 3 3, 0 3, 0 0))":                  polygonOf(rect(0, 0, 3, 3)),
		"POLYGON((0 0,3 0,3 3,0 3,0 0),(1 1,2 1,2 2,1 2,1 1))": polygonOf(rect(0, 0, 3, 3), rect(1, 1, 2, 2)),
		"MULTIPOINT (1 2, 3 4)": le().head(multiPoint).count(2).with(pointOf(xy{1,
			2}), pointOf(xy{3, 4})),
		"MULTIPOINT ((1 2), (3 4))": le().head(multiPoint).count(2).with(pointOf(xy{1,
			2}), pointOf(xy{3, 4})),
		"MULTIPOINT (EMPTY, 3 4, empty)": le().head(multiPoint).count(3).with(pointOf(nowhere), pointOf(xy{3, 4}),
			pointOf(nowhere)),
		"MULTILINESTRING ((0 0, 1 1))": le().head(multiLineString).count(1).with(
			lineOf(xy{0, 0}, xy{1, 1})),
		"MULTIPOLYGON (((0 0, 3 0, 3 3, 0 3, 0 0)))": le().head(multiPolygon).count(1).with(
			polygonOf(rect(0, 0, 3, 3))),
		"GEOMETRYCOLLECTION (POINT (1 2), LINESTRING (0 0, 1 1))": le().head(collection).count(2).with(pointOf(xy{1,
			2}), lineOf(xy{0, 0}, xy{1, 1})),
	} {
		if got, err := AppendText(nil, text); err != nil || string(got) != string(want) {
			t.Errorf("%s: %x, %v, want %x", text, got, err, want)
		}
	}
	empty, err := AppendText(nil, "POINT EMPTY")
	if err != nil {
		t.Fatal(err)
	}
	if hit, err := Match(empty, NewBox(-1e9, -1e9, 1e9, 1e9), column.Intersects); hit || err != nil {
		t.Errorf("an empty point: %v, %v", hit, err)
	}
	for text, kind := range map[string]fault.Kind{"": fault.Unsupported,
		"CIRCULARSTRING (0 0, 1 1, 2 0)": fault.Unsupported, "POINT": fault.Corrupt, "POINT (1)": fault.Corrupt,
		"POINT (1 2": fault.Corrupt, "POINT (1 2) x": fault.Corrupt, "POINT (1e999 2)": fault.Corrupt,
		"POINT (1-2 3)":      fault.Corrupt,
		"POLYGON (0 0, 1 1)": fault.Corrupt, "LINESTRING (0 0 1 1 1)": fault.Corrupt,
		strings.Repeat("GEOMETRYCOLLECTION (", 50) + "POINT (1 2)": fault.Limit} {
		if got, err := AppendText(nil, text); fault.KindOf(err) != kind {
			t.Errorf("%.40s: %x, %v, want %v", text, got, err, kind)
		}
	}
}

// TestDepth: text and binary may be as many collections deep.
func TestDepth(t *testing.T) {
	for depth := maxDepth - 2; depth <= maxDepth+1; depth++ {
		for text, part := range map[string][]byte{"POINT (1 2)": pointOf(xy{1, 2}),
			"POLYGON ((0 0, 1 0, 1 1, 0 1, 0 0))": polygonOf(rect(0, 0, 1, 1)),
			"MULTIPOINT (1 2)":                    le().head(multiPoint).count(1).with(pointOf(xy{1, 2})),
			"MULTILINESTRING ((0 0, 1 1))": le().head(multiLineString).count(1).with(
				lineOf(xy{0, 0}, xy{1, 1}))} {
			var outer []byte
			for range depth {
				outer = append(outer, le().head(collection).count(1).b...)
			}
			want := append(outer, part...)
			_, err := Match(want, NewBox(0, 0, 9, 9), column.Within)
			if _, read := Geometry(want); fault.KindOf(read) != fault.KindOf(err) {
				t.Errorf("%s in %d collections: %v, but read %v", text, depth, err, read)
			}
			text := strings.Repeat("GEOMETRYCOLLECTION (", depth) + text + strings.Repeat(")", depth)
			got, texterr := AppendText(nil, text)
			if fault.KindOf(err) != fault.KindOf(texterr) || err == nil && string(got) != string(want) {
				t.Errorf("%s: %v; text: %v", text, err, texterr)
			}
			if (err == nil) != (depth < maxDepth || depth == maxDepth && part[1] <= polygon) {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}

// TestTaken: texts of many parts take memory by their length. "0 0," becomes 21 bytes, in a slice that doubles.
func TestTaken(t *testing.T) {
	for _, text := range taken.WKT() {
		taken.Check(t, len(text), 2*taken.Factor, func() { _, _ = AppendText(nil, text) })
	}
}

// FuzzText promises that text which parses can be compared.
func FuzzText(f *testing.F) {
	for _, s := range []string{"POINT (1 2)", "MULTIPOINT ((1 2), 3 4)",
		"POLYGON Z ((0 0 1, 3 0 1, 3 3 1, 0 0 1), EMPTY)",
		"GEOMETRYCOLLECTION (POINT EMPTY, MULTIPOLYGON (((0 0, 1 1, 1 0, 0 0))))"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var b []byte
		var err error
		taken.Check(t, len(s), 2*taken.Factor, func() { b, err = AppendText(nil, s) })
		if err != nil {
			return
		}
		if _, err := Match(b, NewBox(0, 0, 1, 1), column.Within); err != nil {
			t.Fatalf("%q: %x: %v", s, b, err)
		}
	})
}

// Match compares a geometry with a box.
func Match(wkb []byte, b Box, rule column.Rule) (bool, error) {
	return (&Place{Boxes: []Box{b}}).Match(wkb, rule, nil)
}
