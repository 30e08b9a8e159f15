package ground

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/paulmach/orb"
	"github.com/paulmach/orb/planar"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/crs"
	"github.com/chaski-eo/chaski/loader/scenes"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
)

// sceneAt returns a scene of pixels of some size.
func sceneAt(row int64, epsg int, x, y, size float64, height, width int) scenes.Scene {
	place := catalog.NewPlace(epsg, &[6]float64{x, size, 0, y, 0, -size}, height, width)
	return scenes.Scene{Row: row, Name: "scene", Place: *place}
}

// world is scenes at both sides of the seam of zones 30 and 31, at 41.5 degrees north.
var world = []scenes.Scene{
	sceneAt(0, 32630, 747000, 4600000, 10, 300, 320),
	sceneAt(1, 32631, 249000, 4600500, 20, 150, 140),
	sceneAt(2, 4326, -0.01, 41.52, 1e-4, 400, 400),
	sceneAt(3, 32630, 747000, 4600000, 10, 300, 320),
}

// holds reports whether a scene has a point of a map, by the place of the point in the scene's own CRS.
func holds(t *testing.T, s *scenes.Scene, c *crs.CRS, p crs.Point) bool {
	t.Helper()
	other, err := crs.Lookup(s.Place.EPSG)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := crs.NewTransform(c, other)
	if err != nil {
		t.Fatal(err)
	}
	at := []crs.Point{p}
	tr.Points(at, at)
	k := &s.Place.Corners
	return at[0][0] >= k[0][0] && at[0][0] < k[3][0] && at[0][1] <= k[0][1] && at[0][1] > k[3][1]
}

// TestCells: the cells of each map are those whose centres, and those of all cells around them, a scene has, and which
// lie in the map's zone: found by asking for each cell.
func TestCells(t *testing.T) {
	for name, o := range map[string]scenes.Options{
		"utm":    {Side: 64, Resolution: 10, CRS: scenes.UTM},
		"edge":   {Side: 64, Resolution: 10, CRS: scenes.UTM, Edge: true},
		"europe": {Side: 48, Resolution: 20, CRS: "EPSG:3035"},
	} {
		s, err := New(world, o)
		if err != nil {
			t.Fatal(name, err)
		}
		g := s.Ground
		has := map[[3]int]bool{}
		for _, r := range g.Runs {
			for x := range r.N {
				has[[3]int{int(r.Map), int(r.Y), int(r.X + x)}] = true
			}
		}
		size := float64(g.Cell) * o.Resolution
		reach := (o.Side/2+g.Cell-1)/g.Cell + 1
		if o.Edge {
			reach = 0
		}
		unlike := 0
		for i, m := range s.Maps {
			covered := map[[2]int]bool{}
			b := orb.Bound{Min: orb.Point{math.Inf(1), math.Inf(1)}, Max: orb.Point{math.Inf(-1), math.Inf(-1)}}
			for _, f := range m.feet {
				b = b.Union(orb.MultiPolygon(f.pieces).Bound())
			}
			box := [4]int{floor(-b.Max[1]/size) - 2, floor(b.Min[0]/size) - 2, floor(-b.Min[1]/size) + 2,
				floor(b.Max[0]/size) + 2}
			centre := func(y, x int) crs.Point {
				return crs.Point{(float64(x) + 0.5) * size, -(float64(y) + 0.5) * size}
			}
			for y := box[0]; y < box[2]; y++ {
				for x := box[1]; x < box[3]; x++ {
					covered[[2]int{y, x}] = slices.ContainsFunc(world, func(s scenes.Scene) bool {
						return holds(t, &s, m.CRS, centre(y, x))
					})
				}
			}
			for y := box[0]; y < box[2]; y++ {
				for x := box[1]; x < box[3]; x++ {
					want := true
					for dy := -reach; dy <= reach && want; dy++ {
						for dx := -reach; dx <= reach && want; dx++ {
							want = covered[[2]int{y + dy, x + dx}]
						}
					}
					at := []crs.Point{centre(y, x)}
					m.CRS.Inverse(at, at)
					if o.CRS == scenes.UTM && (at[0][0] < 0) != (m.CRS.Code() == 32630) {
						want = false
					}
					if want != has[[3]int{i, y, x}] {
						unlike++
					}
				}
			}
		}
		// A centre within 1 mm of a side, or of the seam, may fall to either side.
		if unlike > len(has)/500 || len(has) < 300 {
			t.Errorf("%s: %d of %d cells are other ones", name, unlike, len(has))
		}
	}
}

// TestWindowsLieInside: random windows without Edge lie in the scenes with all pixels that are
// looked at (each fourth), and each sees all scenes that have one of them, in their order.
func TestWindowsLieInside(t *testing.T) {
	s, err := New(world, scenes.Options{Side: 33, Resolution: 10, CRS: scenes.UTM, Samples: 60})
	if err != nil {
		t.Fatal(err)
	}
	pl, err := shuffle.NewPlan(shuffle.Spec{Seed: 7, Source: shuffle.Source{Dataset: &shuffle.Dataset{Items: 4,
		Sampler: shuffle.Sampler{Kind: s.Ground}}}})
	if err != nil {
		t.Fatal(err)
	}
	for p := range pl.Len() {
		d := pl.At(3, p)
		place := pl.Place(&d)
		w := s.Window(place)
		rows := s.Rows(nil, place)
		if !slices.IsSorted(rows) {
			t.Fatalf("position %d: rows %v", p, rows)
		}
		var seen []int64
		for y := 0; y < w.Height; y += 4 {
			for x := 0; x < w.Width; x += 4 {
				at := crs.At(&w.Transform, float64(x)+0.5, float64(y)+0.5)
				found := false
				for i := range world {
					if holds(t, &world[i], w.CRS, at) {
						found = true
						if !slices.Contains(seen, int64(i)) {
							seen = append(seen, int64(i))
						}
					}
				}
				if !found {
					t.Fatalf("position %d: pixel %d, %d lies in no scene", p, y, x)
				}
			}
		}
		for _, row := range seen {
			if !slices.Contains(rows, row) {
				t.Fatalf("position %d: scene %d is missing in %v", p, row, rows)
			}
		}
		if !slices.Contains(seen, d.Row) {
			t.Fatalf("position %d is named by scene %d, and lies in %v", p, d.Row, seen)
		}
	}
}

// TestCellsShrink: shrinking keeps the cells that have all cells around them.
func TestCellsShrink(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		const n = 24
		var grid [n][n]bool
		var list []span
		for range 12 {
			y, x, h, w := rnd.IntN(n), rnd.IntN(n), 1+rnd.IntN(12), 1+rnd.IntN(12)
			for i := y; i < min(y+h, n); i++ {
				list = append(list, span{int32(i - 9), int32(x - 5), int32(min(x+w, n) - 5)})
				for j := x; j < min(x+w, n); j++ {
					grid[i][j] = true
				}
			}
		}
		r := rnd.IntN(4)
		all := joined(list)
		var got [n][n]bool
		for _, s := range all.shrunk(int32(r)) {
			for x := s.x0; x < s.x1; x++ {
				got[s.y+9][x+5] = true
			}
		}
		for y := range n {
			for x := range n {
				want := true
				for i := y - r; i <= y+r; i++ {
					for j := x - r; j <= x+r; j++ {
						want = want && i >= 0 && j >= 0 && i < n && j < n && grid[i][j]
					}
				}
				if got[y][x] != want {
					t.Fatalf("by %d, cell %d, %d is %v", r, y, x, got[y][x])
				}
			}
		}
	}
}

// TestScenesOfNoPlace: places that no map has, or that would take memory without end, are errors.
func TestScenesOfNoPlace(t *testing.T) {
	for name, s := range map[string]scenes.Scene{
		"far north":  sceneAt(0, 3857, 0, 1e300, 10, 64, 64),
		"endless":    sceneAt(0, 3857, 0, 1e12, 1e9, 64, 1<<20),
		"far east":   sceneAt(0, 32630, 1e200, 4e6, 10, 64, 64),
		"over poles": sceneAt(0, 3413, -3e6, 3e6, 1e4, 600, 600),
		"no code":    sceneAt(0, 12, 0, 0, 10, 64, 64),
	} {
		for _, to := range []string{scenes.UTM, "EPSG:3857"} {
			for _, stride := range []int{0, 16} {
				o := scenes.Options{Side: 16, Resolution: 10, CRS: to, Stride: stride}
				if _, err := New([]scenes.Scene{s}, o); fault.KindOf(err) == 0 {
					t.Errorf("%s on %s every %d: %v", name, to, stride, err)
				}
			}
		}
	}
}

// TestLongitudesWithoutEnd: a file whose longitudes are no longitudes is refused, rather than looked for in every zone.
func TestLongitudesWithoutEnd(t *testing.T) {
	for _, size := range []float64{1e3, 1e10, 1e17, 1e300} {
		for _, x := range []float64{0, -1e3, 1e300} {
			place := catalog.NewPlace(4326, &[6]float64{x, size, 0, 41, 0, -1e-4}, 300, 300)
			if place == nil {
				continue
			}
			for _, c := range []string{scenes.UTM, "EPSG:3857"} {
				_, err := New([]scenes.Scene{{Name: "scene", Place: *place}},
					scenes.Options{Side: 32, Resolution: 10, CRS: c})
				if fault.KindOf(err) != fault.Unsupported {
					t.Errorf("pixels of %v degrees from %v on, %s: %v", size, x, c, err)
				}
			}
		}
	}
}

// TestAreasPastTheMap: bounds and roi that reach to where the map has no place leave the same cells as none, because
// they hold all scenes.
func TestAreasPastTheMap(t *testing.T) {
	for _, name := range []string{scenes.UTM, "EPSG:3035", "EPSG:32630", "EPSG:3857"} {
		o := scenes.Options{Side: 64, Resolution: 10, CRS: name}
		all, err := New(world, o)
		if err != nil {
			t.Fatal(name, err)
		}
		for _, b := range []orb.Bound{
			{Min: orb.Point{-180, -90}, Max: orb.Point{180, 90}}, {Min: orb.Point{-60, 10}, Max: orb.Point{170, 89}},
			{Min: orb.Point{170, -90}, Max: orb.Point{380, 90}},
		} {
			o.Within = []scenes.Area{{CRS: wgs84, Parts: []orb.Polygon{b.ToPolygon()}}}
			s, err := New(world, o)
			if err != nil {
				t.Errorf("%s: bounds %v: %v", name, b, err)
				continue
			}
			if !slices.Equal(s.Ground.Runs, all.Ground.Runs) {
				t.Errorf("%s: bounds %v leave %d cells of %d", name, b, s.Ground.Cells(), all.Ground.Cells())
			}
		}
	}
}

// TestSmallAreas: polygons that hold no cell's centre have windows whose middles are at most a cell away from them, and
// each of them has one.
func TestSmallAreas(t *testing.T) {
	const side, pixel = 128, 10.
	place := catalog.NewPlace(32630, &[6]float64{500_000, pixel, 0, 4_600_000, 0, -pixel}, 1000, 1000)
	scene := []scenes.Scene{{Name: "scene", Place: *place}}
	utm, ok := crs.ByCode(32630)
	if !ok {
		t.Fatal("EPSG:32630 is not known")
	}
	var fields []orb.Polygon
	for i := range 30 { // of 30 m, at many places within their cells, which have 80 m
		x, y := 502_000+float64(i)*197, 4_598_000-float64(i)*211
		fields = append(fields, orb.Bound{Min: orb.Point{x, y - 30}, Max: orb.Point{x + 30, y}}.ToPolygon())
	}
	s, err := New(scene, scenes.Options{Side: side, Resolution: pixel, CRS: scenes.UTM,
		Within: []scenes.Area{{CRS: utm, Parts: fields}}})
	if err != nil {
		t.Fatal(err)
	}
	size := float64(s.Ground.Cell) * pixel
	found := make([]bool, len(fields))
	for _, run := range s.Ground.Runs {
		for k := range run.N {
			cell := orb.Bound{Min: orb.Point{float64(run.X+k) * size, -float64(run.Y+1) * size},
				Max: orb.Point{float64(run.X+k+1) * size, -float64(run.Y) * size}}
			near := false
			for i, f := range fields {
				if cell.Intersects(f.Bound()) {
					found[i], near = true, true
				}
			}
			if !near {
				t.Errorf("cell %v touches no field", cell)
			}
		}
	}
	if i := slices.Index(found, false); i >= 0 {
		t.Errorf("field %d has no cell", i)
	}
}

// TestAreasWithHoles: bounds and roi leave the cells whose centres lie in them, and not in a hole of them: asked for
// each cell. They may pass 180 degrees, be cut there, and lie on top of each other.
func TestAreasWithHoles(t *testing.T) {
	box := func(w, s, e, n float64) orb.Ring {
		return orb.Bound{Min: orb.Point{w, s}, Max: orb.Point{e, n}}.ToRing()
	}
	reversed := func(r orb.Ring) orb.Ring {
		slices.Reverse(r)
		return r
	}
	pacific := []scenes.Scene{sceneAt(0, 32760, 814000, 8125000, 10, 800, 700),
		sceneAt(1, 32701, 178000, 8125000, 10, 800, 700)}
	east, whole := box(179.95, -17.02, 180, -16.96), box(-0.02, 41.49, 0.02, 41.53)
	one, other := orb.Polygon{box(-0.02, 41.49, 0.001, 41.51)}, orb.Polygon{box(-0.01, 41.5, 0.02, 41.515)}
	for name, c := range map[string]struct {
		scenes []scenes.Scene
		areas  [][]orb.Polygon // a cell lies in one polygon of each
	}{
		"hole":                   {world, [][]orb.Polygon{{{whole, reversed(box(-0.012, 41.5, 0.011, 41.515))}}}},
		"hole of the same sense": {world, [][]orb.Polygon{{{whole, box(-0.012, 41.5, 0.011, 41.515)}}}},
		"island in a hole": {world, [][]orb.Polygon{{{whole, box(-0.015, 41.495, 0.015, 41.52)},
			{box(-0.005, 41.5, 0.005, 41.51)}}}},
		"on top of each other": {world, [][]orb.Polygon{{one, other}}},
		"both":                 {world, [][]orb.Polygon{{one}, {other}}},
		"past 180":             {pacific, [][]orb.Polygon{{{box(179.95, -17.02, 180.05, -16.96)}}}},
		"before -180":          {pacific, [][]orb.Polygon{{{box(-180.05, -17.02, -179.95, -16.96)}}}},
		"cut at 180":           {pacific, [][]orb.Polygon{{{east}, {box(-180, -17.02, -179.95, -16.96)}}}},
		"a hole at 180": {pacific, [][]orb.Polygon{{{box(179.95, -17.02, 180.05, -16.96),
			box(179.98, -17, 180.02, -16.98)}}}},
	} {
		o := scenes.Options{Side: 64, Resolution: 10, CRS: scenes.UTM}
		all, err := New(c.scenes, o)
		if err != nil {
			t.Fatal(name, err)
		}
		for _, parts := range c.areas {
			o.Within = append(o.Within, scenes.Area{CRS: wgs84, Parts: parts})
		}
		s, err := New(c.scenes, o)
		if err != nil {
			t.Fatal(name, err)
		}
		got := map[[3]int32]bool{}
		for _, r := range s.Ground.Runs {
			for k := range r.N {
				got[[3]int32{int32(s.Maps[r.Map].CRS.Code()), r.Y, r.X + k}] = true
			}
		}
		size, unlike, held := float64(all.Ground.Cell)*o.Resolution, 0, 0
		for _, r := range all.Ground.Runs {
			m := all.Maps[r.Map]
			for k := range r.N {
				at := []crs.Point{{(float64(r.X+k) + 0.5) * size, -(float64(r.Y) + 0.5) * size}}
				m.CRS.Inverse(at, at)
				want := true
				for _, parts := range c.areas {
					want = want && slices.ContainsFunc(parts, func(p orb.Polygon) bool {
						odd := false
						for _, ring := range p {
							for _, turn := range turns {
								odd = odd != planar.RingContains(ring, orb.Point{at[0][0] + turn, at[0][1]})
							}
						}
						return odd
					})
				}
				if want {
					held++
				}
				if want != got[[3]int32{int32(m.CRS.Code()), r.Y, r.X + k}] {
					unlike++
				}
			}
		}
		if unlike > held/200 || held < 100 || len(got) > held+held/200 {
			t.Errorf("%s: %d of %d cells are other ones, of %d", name, unlike, held, len(got))
		}
	}
}

// TestAreasOfNoExtent: areas without extent have the cells that they touch, and ends of the world do no harm.
func TestAreasOfNoExtent(t *testing.T) {
	for name, r := range map[string]orb.Ring{
		"a point":  {{0, 41.505}, {0, 41.505}, {0, 41.505}, {0, 41.505}},
		"a line":   {{-0.001, 41.505}, {0.001, 41.505}, {-0.001, 41.505}},
		"no ring":  {},
		"one end":  {{0, 41.505}},
		"infinite": {{0, 41.505}, {math.Inf(1), 41.505}, {0, 42}, {0, 41.505}},
		"no place": {{0, 41.505}, {math.NaN(), 41.505}, {0, 42}, {0, 41.505}},
	} {
		for _, stride := range []int{0, 16} {
			s, err := New(world, scenes.Options{Side: 32, Resolution: 10, CRS: scenes.UTM, Stride: stride,
				Within: []scenes.Area{{CRS: wgs84, Parts: []orb.Polygon{{r}}}}})
			if err == nil {
				if s.Ground.Cells() > 40 {
					t.Errorf("%s: %d cells", name, s.Ground.Cells())
				}
			} else if fault.KindOf(err) == 0 {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
