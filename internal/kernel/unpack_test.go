package kernel

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestUnpack: numbers are those that bits of a string spell, also where the buffers overlap, and nothing else is
// written.
func TestUnpack(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for width := 1; width <= 8; width++ {
		for count := range 70 {
			packed := make([]byte, (count*width+7)/8)
			for i := range packed {
				packed[i] = byte(r.Uint32())
			}
			want := make([]byte, count)
			for i := range want {
				for k := range width {
					bit := packed[(i*width+k)/8] >> (7 - (i*width+k)%8) & 1
					want[i] = want[i]<<1 | bit
				}
			}
			guard := []byte{1, 2, 3}
			apart := slices.Concat(make([]byte, count), guard)
			Unpack(apart[:count], packed, width)
			together := append(make([]byte, count-len(packed)), packed...)
			Unpack(together, together[count-len(packed):], width)
			got := [][]byte{apart[:count], together, apart[count:]}
			if !slices.EqualFunc(got, [][]byte{want, want, guard}, slices.Equal[[]byte]) {
				t.Fatalf("%d numbers of %d bits: %v, %v, want %v", count, width, apart, together, want)
			}
		}
	}
}
