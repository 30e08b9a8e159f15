package taco

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestMomentsArePooled: means and deviations of weighted rows are those of plain loops over all of
// them at once, but for roundings.
func TestMomentsArePooled(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 2))
	for range 500 {
		n := 1 + rng.IntN(60)
		w, x, within := make([]float64, n), make([]float64, n), make([]float64, n)
		var m moments
		for i := range n {
			w[i], x[i] = float64(1+rng.IntN(1<<16)), 300+math.Ldexp(rng.NormFloat64(), rng.IntN(8))
			s := rng.Float64() * 50
			within[i] = s * s
			m.add(w[i], x[i], s)
		}
		weight, mean, variance := 0.0, 0.0, 0.0
		for i := range n {
			weight += w[i]
			mean += w[i] * x[i]
		}
		mean /= weight
		for i := range n {
			variance += w[i] / weight * ((x[i]-mean)*(x[i]-mean) + within[i])
		}
		std := math.Sqrt(variance)
		if got := m.average(); math.Abs(got-mean) > 1e-13*math.Abs(mean) {
			t.Fatalf("the mean of %d rows is %v, want %v", n, got, mean)
		}
		if got := m.deviation(); math.Abs(got-std) > 1e-12*std {
			t.Fatalf("the deviation of %d rows is %v, want %v", n, got, std)
		}
	}
}
