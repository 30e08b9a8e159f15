package xz

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestNumber: the loop of this processor decodes the numbers of the plain one, learns the same probabilities, and reads
// as many bytes, also past the end of the source.
func TestNumber(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		src := make([]byte, random.IntN(20))
		for i := range src {
			src[i] = byte(random.Uint32())
		}
		limit, compared := uint32(2)<<random.IntN(8), uint32(0)
		if random.IntN(2) == 0 {
			limit, compared = 1<<8, 1<<8 // a byte that is compared with another
		}
		probs := make([]uint16, limit+2*compared)
		for i := range probs {
			probs[i] = uint16(31+random.IntN(certain-62)) ^ even
		}
		fast := coder{src: src, span: least + random.Uint32N(1<<31), code: 0}
		fast.code = random.Uint32N(fast.span)
		plain, learnt := fast, slices.Clone(probs)
		for range 6 {
			other := random.Uint32N(256)
			got := fast.number(probs, limit, other, compared)
			want := plain.numberPlain(learnt, limit, other, compared)
			if got != want || fast.pos != plain.pos || fast.span != plain.span || fast.code != plain.code ||
				!slices.Equal(probs, learnt) {
				t.Fatalf("limit %d: number %d at %d, want %d at %d", limit, got, fast.pos, want, plain.pos)
			}
		}
	}
}
