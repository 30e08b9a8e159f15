package parquet

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestUnpackGivesEveryBit compares numbers of every width and count with their bits read one by one, from bytes that
// end with the last number.
func TestUnpackGivesEveryBit(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for width := range 33 {
		for _, count := range []int{0, 1, 7, 8, 9, 31, 64, 250} {
			b := make([]byte, (count*width+7)/8)
			for i := range b {
				b[i] = byte(random.Uint32())
			}
			want := make([]uint32, count)
			for i := range count * width {
				want[i/width] |= uint32(b[i/8]>>(i%8)&1) << (i % width)
			}
			if got := unpack(nil, b, width, count); !slices.Equal(got, want) {
				t.Fatalf("%d numbers of %d bits: %v, want %v", count, width, got, want)
			}
		}
	}
}
