package clip

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/paulmach/orb"

	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

const w, h = 20.0, 12.0

// inside reports whether a place is inside of an odd number of rings: a ray to the right crosses them so often.
func inside(rings [][]orb.Point, p orb.Point) bool {
	odd := false
	for _, r := range rings {
		for i, b := range r {
			a := r[(i+len(r)-1)%len(r)]
			if (a[1] > p[1]) != (b[1] > p[1]) && p[0] < a[0]+(p[1]-a[1])/(b[1]-a[1])*(b[0]-a[0]) {
				odd = !odd
			}
		}
	}
	return odd
}

// star returns a ring around a place that does not cross itself.
func star(rnd *rand.Rand, x, y, size float64) orb.Ring {
	n := 3 + rnd.IntN(12)
	var r orb.Ring
	for i := range n {
		a := 2 * math.Pi * (float64(i) + 0.9*rnd.Float64()) / float64(n)
		d := size * (0.3 + 0.7*rnd.Float64())
		r = append(r, orb.Point{x + d*math.Cos(a), y + d*math.Sin(a)})
	}
	if rnd.IntN(2) == 0 {
		r.Reverse()
	}
	return append(r, r[0])
}

// polygons returns random polygons, some with holes and some that cross themselves.
func polygons(n int) (out []orb.Polygon) {
	rnd := rand.New(rand.NewPCG(7, 8))
	for i := range n {
		x, y, size := -5+30*rnd.Float64(), -5+22*rnd.Float64(), 1+15*rnd.Float64()
		p := orb.Polygon{star(rnd, x, y, size)}
		switch i % 4 {
		case 1:
			p = append(p, star(rnd, x, y, 0.25*size))
		case 2:
			var r orb.Ring
			for range 3 + rnd.IntN(9) {
				r = append(r, orb.Point{x + size*rnd.NormFloat64(), y + size*rnd.NormFloat64()})
			}
			p = orb.Polygon{append(r, r[0])}
		case 3: // corners on the edges of the window and on its corners
			for k := range p[0][1:] {
				p[0][k] = orb.Point{math.Round(p[0][k][0]/4) * 4, math.Round(p[0][k][1]/4) * 4}
			}
			p[0][len(p[0])-1] = p[0][0]
		}
		out = append(out, p)
	}
	for range n / 8 { // boxes whose corners are in crossed order: their two loops have opposite areas
		x, y, size := -5+30*rnd.Float64(), -5+22*rnd.Float64(), 1+15*rnd.Float64()
		out = append(out, orb.Polygon{{{x, y}, {x + size, y + size}, {x, y + size}, {x + size, y}, {x, y}}})
	}
	return out
}

func pointsOf(rings []Ring) (out [][]orb.Point) {
	for _, r := range rings {
		out = append(out, r.Points)
	}
	return out
}

// TestPolygon promises that a place of the window lies in the cut polygon if, and only if, it lies in the polygon, that
// nothing reaches out of the window, and that outlines and holes turn as they should.
func TestPolygon(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	some := 0
	for i, p := range polygons(3000) {
		var given [][]orb.Point
		for _, r := range p {
			given = append(given, r)
		}
		got := Polygon(p, w, h)
		for _, r := range got {
			loops := len(p[0]) == 5 && p[0][1][1] == p[0][2][1] // that cancel each other, but for rounding
			if area := Area(r.Points); (r.Hole != (area < 0) || area == 0) && !loops || len(r.Points) < 3 {
				t.Fatalf("polygon %d: hole %v of area %v", i, r.Hole, area)
			}
			for _, c := range r.Points {
				if !(c[0] >= 0 && c[0] <= w && c[1] >= 0 && c[1] <= h) {
					t.Fatalf("polygon %d reaches to %v", i, c)
				}
			}
		}
		rings := pointsOf(got)
		for range 100 {
			at := orb.Point{w * rnd.Float64(), h * rnd.Float64()}
			want := inside(given, at)
			if inside(rings, at) != want {
				t.Fatalf("polygon %d %v: place %v is inside: %v, in %v", i, p, at, want, got)
			}
			if want {
				some++
			}
		}
	}
	if some < 20_000 {
		t.Fatal(some)
	}
}

// corners returns the box around what of a polygon lies in the window, by all places that can be its corners: those of
// the polygon and of the window that lie in the other, and where their sides cross.
func corners(p orb.Polygon) (box [4]float64, ok bool) {
	box = [4]float64{math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)}
	add := func(x, y float64) {
		box = [4]float64{min(box[0], x), min(box[1], y), max(box[2], x), max(box[3], y)}
	}
	var rings [][]orb.Point
	for _, r := range p {
		rings = append(rings, r)
		for i, a := range r[:len(r)-1] {
			b := r[i+1]
			if a[0] >= 0 && a[0] <= w && a[1] >= 0 && a[1] <= h {
				add(a[0], a[1])
			}
			for _, x := range []float64{0, w} {
				if y := a[1] + (x-a[0])/(b[0]-a[0])*(b[1]-a[1]); (a[0] < x) != (b[0] < x) && y >= 0 && y <= h {
					add(x, y)
				}
			}
			for _, y := range []float64{0, h} {
				if x := a[0] + (y-a[1])/(b[1]-a[1])*(b[0]-a[0]); (a[1] < y) != (b[1] < y) && x >= 0 && x <= w {
					add(x, y)
				}
			}
		}
	}
	for _, c := range []orb.Point{{0, 0}, {w, 0}, {0, h}, {w, h}} {
		if inside(rings, c) {
			add(c[0], c[1])
		}
	}
	return box, box[0] <= box[2]
}

// around returns the box around rings.
func around(rings []Ring) (box [4]float64, ok bool) {
	box = [4]float64{math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)}
	for _, r := range rings {
		for _, c := range r.Points {
			box = [4]float64{min(box[0], c[0]), min(box[1], c[1]), max(box[2], c[0]), max(box[3], c[1])}
		}
	}
	return box, len(rings) > 0
}

// TestBoxOfPolygon promises that no point of a cut polygon lies outside of the box around what is in the window, where
// a walk around a corner of the window would leave some.
func TestBoxOfPolygon(t *testing.T) {
	found := 0
	for i, p := range polygons(3000) {
		if i%4 == 3 {
			continue // sides along the edges of the window have no area there
		}
		want, ok := corners(p)
		got, some := around(Polygon(p, w, h))
		if some != ok {
			t.Fatalf("polygon %d: %v, %v", i, got, want)
		}
		for k := range want {
			if ok && math.Abs(got[k]-want[k]) > 1e-9 {
				t.Fatalf("polygon %d: %v, want %v", i, got, want)
			}
		}
		if ok {
			found++
		}
	}
	if found < 1000 {
		t.Fatal(found)
	}
}

// TestSidesAlongTheWindow promises that a polygon beside the window is not in it, whichever way it touches it.
func TestSidesAlongTheWindow(t *testing.T) {
	for name, c := range map[string]struct {
		ring orb.Ring
		want [4]float64
		ok   bool
	}{
		"beside":         {orb.Ring{{-4, 2}, {0, 2}, {0, 9}, {-4, 9}}, [4]float64{}, false},
		"beside by 1e-9": {orb.Ring{{-4, 2}, {1e-9, 2}, {1e-9, 9}, {-4, 9}}, [4]float64{}, false},
		"at a corner":    {orb.Ring{{-4, -4}, {0, -4}, {0, 0}, {-4, 0}}, [4]float64{}, false},
		"around one":     {orb.Ring{{-4, -4}, {30, -4}, {30, -2}, {-2, -2}, {-2, 30}, {-4, 30}}, [4]float64{}, false},
		"all":            {orb.Ring{{0, 0}, {w, 0}, {w, h}, {0, h}}, [4]float64{0, 0, w, h}, true},
		// Outside it runs along the edge from 2 to 5, and is inside from 5 to 8 only.
		"along": {orb.Ring{{-3, 2}, {0, 2}, {0, 5}, {4, 5}, {4, 8}, {-3, 8}}, [4]float64{0, 5, 4, 8}, true},
	} {
		for range len(c.ring) { // wherever the ring begins
			c.ring = append(c.ring[1:len(c.ring):len(c.ring)], c.ring[0])
			got, ok := around(Polygon(orb.Polygon{append(slices.Clip(c.ring), c.ring[0])}, w, h))
			if ok != c.ok || ok && got != c.want {
				t.Errorf("%s: %v %v, want %v", name, got, ok, c.want)
			}
		}
	}
}

// TestNumbersThatAreNone promises that coordinates that are not finite are in no window.
func TestNumbersThatAreNone(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if got := Polygon(orb.Polygon{{{1, 1}, {bad, 1}, {3, 3}, {1, 1}}}, w, h); got != nil {
			t.Error(bad, got)
		}
	}
}

// TestFarthestNumbers promises coordinates in the window of shapes whose sides have no length as float64.
func TestFarthestNumbers(t *testing.T) {
	const far = math.MaxFloat64
	within := func(p orb.Point) bool { return p[0] >= 0 && p[0] <= w && p[1] >= 0 && p[1] <= h }
	for _, p := range []orb.Polygon{
		{{{-far, 5}, {far, -5}, {far, 10}, {-far, 5}}},
		{{{-far, far}, {far, -far}, {5, -far}, {-far, far}}},
		{{{-far, 1}, {5, -far}, {5, far}, {-far, 1}}},
	} {
		for _, r := range Polygon(p, w, h) {
			for _, at := range r.Points {
				if !within(at) {
					t.Errorf("%v: %v", p, r.Points)
				}
			}
		}
		for i := 1; i < len(p[0]); i++ {
			if from, to, ok := Segment(p[0][i-1], p[0][i], w, h); ok && !(within(from) && within(to)) {
				t.Errorf("%v to %v: %v %v", p[0][i-1], p[0][i], from, to)
			}
		}
	}
}

// TestSegment promises that the part of a line in the window is the one that its places in the window have.
func TestSegment(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 3))
	in := 0
	for range 5000 {
		a := orb.Point{-10 + 40*rnd.Float64(), -10 + 32*rnd.Float64()}
		b := orb.Point{-10 + 40*rnd.Float64(), -10 + 32*rnd.Float64()}
		from, to, ok := Segment(a, b, w, h)
		const n = 200
		lo, hi := -1.0, -1.0
		for k := range n + 1 {
			x, y := a[0]+float64(k)/n*(b[0]-a[0]), a[1]+float64(k)/n*(b[1]-a[1])
			if x >= 0 && x <= w && y >= 0 && y <= h {
				if hi = float64(k); lo < 0 {
					lo = hi
				}
			}
		}
		length := math.Hypot(b[0]-a[0], b[1]-a[1])
		got := math.Hypot(to[0]-from[0], to[1]-from[1]) * n / length
		if lo >= 0 {
			in++
		}
		if lo >= 0 && (!ok || math.Abs(got-(hi-lo)) > 2) || lo < 0 && ok && got > 1 {
			t.Fatalf("%v to %v: %v %v %v, want steps %v to %v", a, b, from, to, ok, lo, hi)
		}
	}
	if in < 1000 {
		t.Fatal(in)
	}
}

// TestPolygonLikeShapely promises that cut polygons cover what shapely's intersection with the window covers.
func TestPolygonLikeShapely(t *testing.T) {
	python := os.Getenv("CHASKI_ORACLE_PYTHON")
	if python == "" {
		t.Skip("CHASKI_ORACLE_PYTHON names no Python with shapely")
	}
	type one struct {
		Given orb.Polygon
		Cut   [][]orb.Point
	}
	var all []one
	for _, p := range polygons(2000) {
		all = append(all, one{p, pointsOf(Polygon(p, w, h))})
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	name := t.TempDir() + "/polygons.json"
	testfile.Write(t, name, text)
	out, err := exec.Command(python, "-c", `
import json, sys
import shapely
window = shapely.box(0, 0, 20, 12)
seen = 0
for i, one in enumerate(json.load(open(sys.argv[1]))):
    given = shapely.Polygon(one["Given"][0], one["Given"][1:])
    if not given.is_valid:
        continue
    want = given.intersection(window)
    got = shapely.Polygon()
    for ring in one["Cut"] or ():
        got = got.symmetric_difference(shapely.make_valid(shapely.Polygon(ring)))
    assert got.symmetric_difference(want).area < 1e-6, (i, got.wkt, want.wkt)
    if want.area > 0:
        seen += 1
        flat = [p for p in getattr(want, "geoms", [want]) if p.area > 0]
        assert max(abs(a - b) for a, b in zip(got.bounds, shapely.union_all(flat).bounds)) < 1e-6, i
assert seen > 500, seen
print(seen)
`, name).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Logf("%s polygons", out)
}
