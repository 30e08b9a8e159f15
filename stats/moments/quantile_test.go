package moments

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestQuantile: the number is that of rational arithmetic, but for three roundings, and a value's own at its rank.
func TestQuantile(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	for range 2000 {
		sorted := make([]float64, 1+rng.IntN(40))
		for i := range sorted {
			sorted[i] = math.Ldexp(rng.NormFloat64(), rng.IntN(20))
		}
		slices.Sort(sorted)
		last := len(sorted) - 1
		for rank := range sorted {
			if got := Quantile(float64(rank)/float64(max(last, 1)), sorted); math.Abs(got-sorted[rank]) >
				1e-14*(math.Abs(sorted[0])+math.Abs(sorted[last])) {
				t.Fatalf("rank %d of %v: %v", rank, sorted, got)
			}
		}
		if lo, hi := Quantile(0, sorted), Quantile(1, sorted); lo != sorted[0] || hi != sorted[last] {
			t.Fatalf("the ends of %v: %v and %v", sorted, lo, hi)
		}
		// A fraction whose place is exact: the two neighbours are known.
		fraction := float64(rng.IntN(1025)) / 1024
		place := fraction * float64(last)
		below := min(int(place), max(last-1, 0))
		above := min(below+1, last)
		part := new(big.Rat).SetFloat64(place - float64(below))
		want := new(big.Rat).Sub(new(big.Rat).SetFloat64(sorted[above]), new(big.Rat).SetFloat64(sorted[below]))
		want.Add(want.Mul(want, part), new(big.Rat).SetFloat64(sorted[below]))
		exact, _ := want.Float64()
		ulp := math.Nextafter(max(math.Abs(sorted[below]), math.Abs(sorted[above])), math.Inf(1)) -
			max(math.Abs(sorted[below]), math.Abs(sorted[above]))
		if got := Quantile(fraction, sorted); math.Abs(got-exact) > 1.5*ulp {
			t.Fatalf("%v of %v: %v, want %v", fraction, sorted, got, exact)
		}
	}
	// numpy.quantile([1, 2, 4, 8], [0.025, 0.5, 0.985])
	for fraction, want := range map[float64]float64{0.025: 1.075, 0.5: 3, 0.985: 7.82} {
		if got := Quantile(fraction, []float64{1, 2, 4, 8}); !near(got, want, 2e-15) {
			t.Errorf("%v: %v, want %v", fraction, got, want)
		}
	}
}
