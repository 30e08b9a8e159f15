package shuffle

import (
	"math"
	"testing"

	"github.com/chaski-eo/chaski/internal/splitmix"
)

func groundPlan(t *testing.T, g Ground, shuffled bool) *Plan {
	t.Helper()
	g.Scene = func(Place) int64 { return 1 }
	pl, err := NewPlan(Spec{Seed: 5, Shuffle: shuffled, Source: Source{Dataset: &Dataset{Items: 2,
		Sampler: Sampler{Kind: &g}}}})
	if err != nil {
		t.Fatal(err)
	}
	return pl
}

var groundRuns = []CellRun{{0, -7, -3, 5}, {0, -6, -4, 1}, {1, 3, 100, 11}}

// TestGroundGrid: an epoch of a grid has each cell's window once, and without shuffling in the order of the cells.
func TestGroundGrid(t *testing.T) {
	for _, shuffled := range []bool{false, true} {
		pl := groundPlan(t, Ground{Side: 8, Cell: 4, Runs: groundRuns}, shuffled)
		if pl.Len() != 17 {
			t.Fatal(pl.Len())
		}
		var places []Place
		for _, r := range groundRuns {
			for x := range r.N {
				places = append(places, Place{int(r.Map), 4 * int64(r.Y), 4 * int64(r.X+x)})
			}
		}
		seen := map[Place]int{}
		for p := range pl.Len() {
			d := pl.At(2, p)
			at := pl.Place(&d)
			if seen[at]++; !shuffled && at != places[p] {
				t.Errorf("position %d is at %v, want %v", p, at, places[p])
			}
			if d.Row != 1 {
				t.Errorf("position %d: sample %d, row %d", p, d.Sample, d.Row)
			}
		}
		for _, at := range places {
			if seen[at] != 1 {
				t.Errorf("%v comes %d times", at, seen[at])
			}
		}
	}
}

// TestGroundIsUniform: all pixels of all cells are equally likely to be the middle of a random window, and the windows
// of substitutes are others.
func TestGroundIsUniform(t *testing.T) {
	const n = 64_000
	pl := groundPlan(t, Ground{Side: 9, Cell: 2, Samples: n, Runs: groundRuns}, true)
	counts := map[Place]float64{}
	moved := 0
	for p := range pl.Len() {
		d := pl.At(0, p)
		at := pl.Place(&d)
		counts[Place{at.Map, at.Y + 4, at.X + 4}]++
		other := pl.Substitute(d, 1)
		if pl.Place(&other) != at {
			moved++
		}
	}
	pixels := 0
	chi := 0.0
	want := float64(n) / (17 * 4)
	for _, r := range groundRuns {
		for x := 2 * int64(r.X); x < 2*int64(r.X+r.N); x++ {
			for y := 2 * int64(r.Y); y < 2*int64(r.Y)+2; y++ {
				d := counts[Place{int(r.Map), y, x}] - want
				chi += d * d / want
				pixels++
			}
		}
	}
	if pixels != len(counts) || math.Abs(chi-67) > 60 { // 5 standard deviations of 67 degrees of freedom
		t.Errorf("%d places of %d, chi square %v", len(counts), pixels, chi)
	}
	if moved < n*9/10 {
		t.Errorf("%d of %d substitutes lie elsewhere", moved, n)
	}
}

// TestBeside: views on the ground lie where docs/order.md says, by a walk over all cells.
func TestBeside(t *testing.T) {
	type cell struct{ number, y, x int64 }
	cells := map[cell]bool{}
	for _, r := range groundRuns {
		for x := range r.N {
			cells[cell{int64(r.Map), int64(r.Y), int64(r.X + x)}] = true
		}
	}
	floor := func(a, b int64) int64 { return int64(math.Floor(float64(a) / float64(b))) }
	shared := func(a, n, b, m int64) int64 { return max(min(a+n, b+m)-max(a, b), 0) }
	fell := 0
	for _, samples := range []int64{0, 3000} {
		views := []Sampler{{Kind: &Beside{Side: 9}}, {Kind: &Beside{Side: 4, Overlap: 0.6}},
			{Kind: &Beside{Side: 9, Overlap: 0.9}}, {Kind: &Beside{Side: 5, Overlap: 1}}}
		ground := &Ground{Side: 9, Cell: 2, Samples: samples, Runs: groundRuns, Scene: func(Place) int64 { return 1 }}
		pl, err := NewPlan(Spec{Seed: 5, Shuffle: true, Source: Source{Dataset: &Dataset{Items: 2, Views: views,
			Sampler: Sampler{Kind: ground}}}})
		if err != nil {
			t.Fatal(err)
		}
		for p := range pl.Len() {
			draw := pl.At(3, p)
			first := pl.Place(&draw)
			for v := range views {
				second := views[v].Kind.(*Beside)
				side := int64(second.Side)
				least := max(int64(math.Ceil(second.Overlap*float64(side))), 1)
				var want Place
				found := false
				for try := uint64(0); try < 64 && !found; try++ {
					seed := splitmix.Hash(5, 18, uint64(v+1), try)
					coord := func(from int64, word uint64) int64 {
						hash := splitmix.Hash(seed, 15, 3, uint64(p), word)
						return from - side + least + splitmix.Below64(hash, 9+side-2*least+1)
					}
					want = Place{first.Map, coord(first.Y, 3), coord(first.X, 4)}
					area := shared(want.Y, side, first.Y, 9) * shared(want.X, side, first.X, 9)
					middle := cell{int64(want.Map), floor(want.Y+side/2, 2), floor(want.X+side/2, 2)}
					found = float64(area) >= second.Overlap*float64(side*side) && (samples == 0 || cells[middle])
				}
				if !found {
					fell++
					want = Place{first.Map, first.Y + (9-side)/2, first.X + (9-side)/2}
				}
				drawn := pl.View(&draw, v+1)
				if got := pl.Place(&drawn); got != want {
					t.Fatalf("view %d at position %d is at %v, want %v beside %v", v+1, p, got, want, first)
				}
			}
		}
	}
	if fell == 0 {
		t.Error("no view fell back to the middle of its first window")
	}
}

// TestViewsThatDoNotGoTogether: a plan refuses views of the wrong kind, or larger than the first window.
func TestViewsThatDoNotGoTogether(t *testing.T) {
	ground := &Ground{Side: 9, Cell: 2, Samples: 4, Runs: groundRuns, Scene: func(Place) int64 { return 1 }}
	for i, kinds := range [][2]Kind{
		{ground, &Beside{Side: 10}}, {ground, WholeChip{}}, {WholeChip{}, &Beside{Side: 4}},
		{ground, &Beside{Side: 4, Overlap: 2}},
		{WholeChip{}, &Visits{H: 2, W: 2, TileH: 4, TileW: 4, PerVisit: 1, Pool: 1, AlignY: 1, AlignX: 1}},
	} {
		_, err := NewPlan(Spec{Source: Source{Dataset: &Dataset{Items: 1, Sampler: Sampler{Kind: kinds[0]},
			Views: []Sampler{{Kind: kinds[1]}}}}})
		if err == nil {
			t.Errorf("case %d: there is a plan", i)
		}
	}
}
