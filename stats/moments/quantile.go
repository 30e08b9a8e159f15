package moments

import (
	"slices"

	"gonum.org/v1/gonum/stat"
)

// Quantile returns the value at a fraction of sorted values, interpolated linearly between the two nearest ranks, as
// numpy.quantile does by default. There must be at least one value, and all must be finite.
func Quantile(fraction float64, sorted []float64) float64 {
	// stat.LinInterp takes value i, counted from 1, as the one at i/n. With no weight for the first value, it is the
	// one at (i-1)/(n-1).
	weights := slices.Repeat([]float64{1}, len(sorted))
	weights[0] = 0
	return stat.Quantile(fraction, stat.LinInterp, sorted, weights)
}
