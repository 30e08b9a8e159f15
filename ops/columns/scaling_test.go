package columns

import (
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/tiff"
)

// TestScaledStatistics: statistics of scaled values are those of the values, computed one by one.
func TestScaledStatistics(t *testing.T) {
	values := []float64{3, 9, 4, 4, 0, 7, 2, 8}
	for _, of := range [][2]float64{{0.5, -3}, {-2, 1}, {1, 10}} {
		var scaled []float64
		for _, v := range values {
			scaled = append(scaled, v*of[0]+of[1])
		}
		r := &Raster{Stats: [][]float64{summary(slices.Clone(values), len(values), bandPercents)}}
		r.factors, r.offsets = scales([]tiff.Band{{Scale: &of[0], Offset: &of[1]}}, 1)
		r.scale(false)
		want := summary(scaled, len(scaled), bandPercents)
		n := len(want)
		if of[0] < 0 { // a percentile from below is then one from above
			n = 5
		}
		for i, v := range want[:n] {
			if d := r.Stats[0][i] - v; d > 1e-12 || d < -1e-12 {
				t.Errorf("%v: value %d is %v, want %v", of, i, r.Stats[0][i], v)
			}
		}
	}
}
