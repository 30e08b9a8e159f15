package ground

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/paulmach/orb"

	"github.com/chaski-eo/chaski/internal/crs"
	"github.com/chaski-eo/chaski/loader/scenes"
	"github.com/chaski-eo/chaski/shuffle"
)

// split is a split by place, for a test: the parts of cells of some degrees by a hash that the test has itself.
type split struct {
	seed uint64
	size float64
}

// part returns the part of a point, 0 or 1.
func (s *split) part(lon, lat float64) int {
	y, x := int64(math.Floor(lat/s.size)), int64(math.Floor(lon/s.size))
	h := (uint64(y)*0x9E3779B97F4A7C15 ^ uint64(x)*0xC2B2AE3D27D4EB4F) + s.seed*0x165667B19E3779F9
	h ^= h >> 29
	h *= 0xBF58476D1CE4E5B9
	return int(h >> 63)
}

// windowsOf returns windows of a set: all of a grid, and otherwise n random ones.
func windowsOf(t *testing.T, s *Set, seed uint64, n int64) (out []shuffle.Place) {
	t.Helper()
	if s.Ground.Samples > 0 {
		s.Ground.Samples = n
	}
	pl, err := shuffle.NewPlan(shuffle.Spec{Seed: seed, Source: shuffle.Source{Dataset: &shuffle.Dataset{
		Items: 10, Sampler: shuffle.Sampler{Kind: s.Ground}}}})
	if err != nil {
		t.Fatal(err)
	}
	for p := range pl.Len() {
		d := pl.At(0, p)
		out = append(out, pl.Place(&d))
	}
	return out
}

// edgeOf returns points along the edge of a window, and its middle.
func edgeOf(b orb.Bound) (out []crs.Point) {
	const n = 16
	for i := range n + 1 {
		x := b.Min[0] + (b.Max[0]-b.Min[0])*float64(i)/n
		y := b.Min[1] + (b.Max[1]-b.Min[1])*float64(i)/n
		out = append(out, crs.Point{x, b.Min[1]}, crs.Point{x, b.Max[1]}, crs.Point{b.Min[0], y},
			crs.Point{b.Max[0], y})
	}
	return append(out, crs.Point(b.Center()))
}

// apart checks that a window of one part lies at least margin metres from one of the other part if they have one map,
// and that they do not overlap if they have two.
func apart(t *testing.T, a, b *Set, p, q shuffle.Place, margin float64) error {
	t.Helper()
	v, w := a.bound(p), b.bound(q)
	from, to := a.Maps[p.Map].CRS, b.Maps[q.Map].CRS
	if from.Code() == to.Code() {
		gap := max(v.Min[0]-w.Max[0], w.Min[0]-v.Max[0], v.Min[1]-w.Max[1], w.Min[1]-v.Max[1])
		if gap < margin {
			return fmt.Errorf("%v and %v of %v are %v m apart, want %v", v, w, from, gap, margin)
		}
		return nil
	}
	tr, err := crs.NewTransform(from, to)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range edgeOf(v) {
		one := []crs.Point{at}
		tr.Points(one, one)
		if w.Contains(orb.Point(one[0])) {
			return fmt.Errorf("%v of %v has %v of a window of %v", w, to, one[0], from)
		}
	}
	return nil
}

// TestPartsDoNotOverlap: for random splits, margins, maps and samplers no window of a part overlaps one of the other
// part, also across the seam of two zones; they are the margin apart; and each lies in squares of its own part.
func TestPartsDoNotOverlap(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	rounds, most := 12, 0.
	if testing.Short() {
		rounds = 3
	}
	places := [][]scenes.Scene{{
		sceneAt(0, 32630, 740000, 4620000, 10, 2400, 2000), sceneAt(1, 32631, 242000, 4620000, 20, 1200, 1000),
		sceneAt(2, 4326, -0.1, 41.6, 1e-4, 2500, 2500),
	}, { // 180 degrees east and west, in the south
		sceneAt(0, 32760, 806000, 8130000, 10, 2400, 2000), sceneAt(1, 32701, 170000, 8130000, 20, 1200, 1000),
		sceneAt(2, 4326, 179.9, -16.9, 1e-4, 2500, 2500),
	}, { // the equator
		sceneAt(0, 32630, 490000, 12000, 10, 2400, 2000), sceneAt(1, 32730, 500000, 10011000, 20, 1200, 1000),
	}, { // where zones are narrow
		sceneAt(0, 32633, 480000, 9290000, 10, 2400, 3600), sceneAt(1, 4326, 16, 83.7, 1e-3, 300, 3000),
	}}
	for round := range rounds {
		large := places[round/3%len(places)]
		cut := split{rnd.Uint64(), 0.03 + 0.05*rnd.Float64()}
		o := scenes.Options{Side: 16 + rnd.IntN(60), Resolution: 10, Edge: round%3 == 0}
		if o.CRS = []string{scenes.UTM, "EPSG:3035", "EPSG:3857", scenes.UTM}[round%4]; round/3%len(places) > 0 {
			o.CRS = scenes.UTM
		}
		if round%2 == 1 {
			o.Stride, o.Edge = 1+rnd.IntN(o.Side), false
		}
		margin := float64(round%3) * (100 + 150*rnd.Float64())
		var sets [2]*Set
		var windows [2][]shuffle.Place
		for k := range sets {
			o.Part = &scenes.Part{Size: cut.size, Margin: margin, Has: func(lon, lat float64) bool {
				return cut.part(lon, lat) == k
			}}
			s, err := New(large, o)
			if err != nil {
				t.Fatalf("round %d: %v: %v", round, o, err)
			}
			sets[k], windows[k] = s, windowsOf(t, s, rnd.Uint64(), 50)
			rnd.Shuffle(len(windows[k]), func(i, j int) {
				windows[k][i], windows[k][j] = windows[k][j], windows[k][i]
			})
			windows[k] = windows[k][:min(len(windows[k]), 50)]
			for _, p := range windows[k] {
				at := edgeOf(s.bound(p))
				s.Maps[p.Map].CRS.Inverse(at, at)
				for _, q := range at {
					if cut.part(q[0], q[1]) != k {
						t.Fatalf("round %d: %v has a point of the other part at %v", round, p, q)
					}
				}
			}
		}
		for _, p := range windows[0] {
			for _, q := range windows[1] {
				if err := apart(t, sets[0], sets[1], p, q, margin); err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
			}
		}
		most = max(most, margin)
	}
	if most < 100 {
		t.Errorf("the largest margin was %v", most)
	}
}

// TestSmallSquares: squares of a split in which no window fits are errors that say so.
func TestSmallSquares(t *testing.T) {
	for _, size := range []float64{1e-9, 1e-5, 1e-3, 5e-3} {
		o := scenes.Options{Side: 64, Resolution: 10, CRS: scenes.UTM}
		o.Part = &scenes.Part{Size: size, Has: func(lon, _ float64) bool {
			return math.Mod(math.Floor(lon/size), 2) == 0
		}}
		if s, err := New(world, o); err == nil {
			t.Errorf("%v degrees: %d cells", size, s.Ground.Cells())
		}
	}
}
