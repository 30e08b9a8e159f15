package source_test

import (
	"math"
	"math/big"
	"testing"

	"github.com/chaski-eo/chaski/source"
)

// TestFits: a range lies in a file if its ends do, by numbers without bounds.
func TestFits(t *testing.T) {
	numbers := []int64{math.MinInt64, math.MinInt64 + 1, -2, -1, 0, 1, 2, 9, 10, 11, math.MaxInt64 - 1, math.MaxInt64}
	for _, off := range numbers {
		for _, n := range numbers {
			for _, size := range []int64{0, 1, 10, math.MaxInt64} {
				end := new(big.Int).Add(big.NewInt(off), big.NewInt(n))
				want := off >= 0 && n >= 0 && end.Cmp(big.NewInt(size)) <= 0
				if source.Fits(off, n, size) != want {
					t.Errorf("%d bytes at %d of %d: %v", n, off, size, !want)
				}
			}
		}
	}
}
