package shuffle

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

func inf() float64 { return math.Inf(1) }

// TestSplitHoldsItsShares: the parts of a split have nearly their shares, by id and by cell, and a
// cell is in one part only.
func TestSplitHoldsItsShares(t *testing.T) {
	parts, err := Apportion(SplitTotal, []float64{0.7, 0.2, 0.1})
	if err != nil {
		t.Fatal(err)
	}
	s := Split{Seed: 1, Shares: shares(parts)}
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	const n = 20_000
	ids, cells := make([]float64, 3), make([]float64, 3)
	for i := range n {
		ids[s.OfText(fmt.Sprintf("scene_%d", i))]++
		y, x := float64(i/200), float64(i%200)-100
		side := s.OfCell([4]float64{x, y, x + 1, y + 1}, 1)
		cells[side]++
		for _, inside := range []float64{0.1, 0.5, 0.8} {
			if got := s.OfCell([4]float64{x + inside, y, x + inside + 0.1, y + 0.3}, 1); got != side {
				t.Fatalf("cell (%v, %v) is on sides %d and %d", y, x, side, got)
			}
		}
	}
	for i, want := range []float64{0.7, 0.2, 0.1} {
		if math.Abs(ids[i]/n-want) > 0.015 || math.Abs(cells[i]/n-want) > 0.015 {
			t.Errorf("%s has %v of the ids and %v of the cells, not %v", s.Shares[i].Name, ids[i]/n, cells[i]/n, want)
		}
	}
}

// TestSplitAtTheBounds: the upper 32 bits of a hash are a number below SplitTotal. The first numbers are the parts of
// the first share, the next ones of the second share, and so on.
func TestSplitAtTheBounds(t *testing.T) {
	s := Split{Shares: shares([]int64{1, 2, SplitTotal - 3})}
	for number, want := range map[uint64]int{0: 0, 1: 1, 2: 1, 3: 2, 4: 2, SplitTotal - 1: 2} {
		for _, low := range []uint64{0, math.MaxUint32} {
			if got := s.Of(number<<32 | low); got != want {
				t.Errorf("number %d is of share %d, want %d", number, got, want)
			}
		}
	}
}

func TestSplitRefuses(t *testing.T) {
	for _, parts := range [][]int64{
		nil, {SplitTotal - 1}, {SplitTotal, 1}, {SplitTotal + 1, -1},
		{0, SplitTotal}, {math.MaxInt64, math.MaxInt64},
	} {
		if err := (&Split{Shares: shares(parts)}).Check(); err == nil {
			t.Errorf("%v was accepted", parts)
		}
	}
	s := Split{Shares: shares([]int64{SplitTotal})}
	for _, c := range []struct {
		bounds [4]float64
		size   float64
	}{
		{[4]float64{0, 0, inf(), 0}, 1},
		{[4]float64{math.NaN(), 0, 0, 0}, 1},
		{[4]float64{}, 0},
		{[4]float64{}, -1},
		{[4]float64{1e300, 0, 1e300, 0}, 1},
		{[4]float64{}, math.NaN()},
	} {
		if got := s.OfCell(c.bounds, c.size); got != -1 {
			t.Errorf("%+v belongs to %d", c, got)
		}
	}
	if (&Split{}).OfText("a") != -1 {
		t.Error("a split without shares has a share")
	}
}

// TestElementsAreEquallyLikely: each element of a set comes as often as the others, and no other one.
func TestElementsAreEquallyLikely(t *testing.T) {
	for _, c := range []struct {
		set  Elements
		want string
	}{{D4, "0 1 2 3 4 5 6 7"}, {Flips, "0 1 2 3"}, {Rotations, "0 3 5 6"}, {FlipsX, "0 1"}, {FlipsY, "0 2"}, {0, "0"}} {
		counts, want := make([]int, 8), ""
		const n = 16_000
		for p := range int64(n) {
			counts[c.set.At(1, 2, p)]++
		}
		used := counts[:0:0]
		for g, count := range counts {
			if count > 0 {
				want += fmt.Sprintf(" %d", g)
				used = append(used, count)
			}
		}
		if want[1:] != c.want || len(used) > 1 && chiSquare(used, n/float64(len(used)), int64(len(used)-1)) > 5 {
			t.Errorf("set %08b: %v", c.set, counts)
		}
	}
	if D4.Swaps() != true || Flips.Swaps() || Rotate180.String() != "rotate 180" {
		t.Error("sets or names are wrong")
	}
}

// TestSplitExactly: shares of few hashes are kept to the nearest whole one, none is empty, and all hashes are of one.
func TestSplitExactly(t *testing.T) {
	for _, c := range []struct {
		weights []float64
		n       int
		want    []int
	}{
		{[]float64{3, 1}, 4, []int{3, 1}}, {[]float64{0.9, 0.1}, 4, []int{3, 1}}, {[]float64{1, 9}, 3, []int{1, 2}},
		{[]float64{0.8, 0.1, 0.1}, 10, []int{8, 1, 1}}, {[]float64{0.8, 0.1, 0.1}, 3, []int{1, 1, 1}},
		{[]float64{1, 1}, 1, []int{1, 0}}, {[]float64{1, 1}, 0, []int{0, 0}},
		{[]float64{7, 2, 1}, 1000, []int{700, 200, 100}},
		{[]float64{0.01, 0.01, 0.98}, 3, []int{1, 1, 1}}, {[]float64{1}, 5, []int{5}},
	} {
		parts, err := Apportion(SplitTotal, c.weights)
		if err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(6) {
			s := Split{Seed: seed, Shares: shares(parts)}
			var hashes []uint64
			for i := range c.n {
				hash := s.HashOfText(fmt.Sprint("scene ", i))
				hashes = append(hashes, hash, hash) // of two rows
			}
			of := s.Exactly(hashes)
			got := make([]int, len(c.weights))
			for i := range c.n {
				got[of(s.HashOfText(fmt.Sprint("scene ", i)))]++
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%v of %d with seed %d: %v, want %v", c.weights, c.n, seed, got, c.want)
			}
		}
	}
	if of := (&Split{}).Exactly([]uint64{1}); of(1) != -1 || of(2) != -1 {
		t.Error("a split without shares has some")
	}
}
