package spacetime

import (
	"math"
	"testing"
)

// TestScaled: times beyond the range of microseconds are its first or last one.
func TestScaled(t *testing.T) {
	for n, want := range map[int64]int64{math.MinInt64: math.MinInt64, -1: -day, 0: 0, 3: 3 * day,
		math.MaxInt64 / day: math.MaxInt64 / day * day, math.MaxInt64/day + 1: math.MaxInt64} {
		if got := scaled(n, day); got != want {
			t.Errorf("%d days are %d, want %d", n, got, want)
		}
	}
}
