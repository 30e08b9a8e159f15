package digest

import (
	"math/rand/v2"
	"testing"

	"github.com/zeebo/xxh3"
)

// TestFirst: the places are those that a map finds, also where the lower halves of digests are equal.
func TestFirst(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 200 {
		sums, seen, again := make([]xxh3.Uint128, n), map[xxh3.Uint128]uint32{}, false
		want := make([]uint32, n)
		for i := range sums {
			sums[i] = xxh3.Uint128{Hi: r.Uint64N(uint64(n) * 3), Lo: r.Uint64N(3)}
			want[i] = uint32(i)
			if sums[i] == (xxh3.Uint128{}) {
				continue
			}
			if first, ok := seen[sums[i]]; ok {
				want[i], again = first, true
			} else {
				seen[sums[i]] = uint32(i)
			}
		}
		got := First(sums)
		if (got != nil) != again {
			t.Fatalf("%d digests, some equal: %v, got %v", n, again, got)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("digest %d of %d: %d, want %d", i, n, got[i], want[i])
			}
		}
	}
}
