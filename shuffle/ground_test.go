package shuffle

import (
	"math"
	"testing"
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
