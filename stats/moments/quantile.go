package moments

import "math"

// Quantile returns the value at a fraction of sorted values, interpolated linearly between the two nearest ranks, as
// numpy.quantile does by default. There must be at least one value, and all must be finite.
func Quantile(fraction float64, sorted []float64) float64 {
	rank := fraction * float64(len(sorted)-1)
	above := int(math.Ceil(rank))
	if above == 0 {
		return sorted[0]
	}
	part := float64(above) - rank // of the value below; conversions keep processors from fusing products and sums
	return float64(part*sorted[above-1]) + float64((1-part)*sorted[above])
}
