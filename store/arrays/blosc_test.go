package arrays

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// bloscMatch appends a match of BloscLZ: how many bytes to copy, and from how far back.
func bloscMatch(src []byte, length, distance int) []byte {
	far := distance > 8191
	low := distance - 1
	if far {
		low = 31<<8 + 255
	}
	ctrl := min(length-3, 6) + 1
	src = append(src, byte(ctrl<<5|low>>8))
	if rest := length - 9; rest >= 0 {
		for ; rest >= 255; rest -= 255 {
			src = append(src, 255)
		}
		src = append(src, byte(rest))
	}
	src = append(src, byte(low))
	if far {
		src = append(src, byte((distance-8192)>>8), byte(distance-8192))
	}
	return src
}

// TestBloscLZ: streams of random literals and matches, near and far, short and long, become the bytes that copying one
// by one gives. Streams that are cut off are refused.
func TestBloscLZ(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		var src, want []byte
		for len(want) < 1<<15 {
			literals := make([]byte, 1+r.IntN(32))
			for i := range literals {
				literals[i] = byte(r.Uint32())
			}
			src = append(append(src, byte(len(literals)-1)), literals...)
			want = append(want, literals...)
			length, distance := 3+r.IntN(600), 1+r.IntN(min(len(want), 8192+1<<16-1))
			src = bloscMatch(src, length, distance)
			for range length {
				want = append(want, want[len(want)-distance])
			}
		}
		dst := make([]byte, len(want))
		if !unBloscLZ(dst, src) || !bytes.Equal(dst, want) {
			t.Fatal("a stream is decoded otherwise")
		}
		for _, n := range []int{0, len(src) / 2, len(src) - 1} {
			if unBloscLZ(dst, src[:n:n]) {
				t.Fatalf("%d bytes of a stream of %d are decoded", n, len(src))
			}
		}
		if unBloscLZ(dst[1:], src) {
			t.Fatal("a stream is decoded to fewer bytes than it has")
		}
	}
}
