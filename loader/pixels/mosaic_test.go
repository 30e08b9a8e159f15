package pixels

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/chaski-eo/chaski/internal/cast"
)

// TestGather: samples of each size are those that picks name, and 0 where they name none.
func TestGather(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{1, 2, 4, 8, 16} {
		in, out := cast.Aligned(100*size), cast.Aligned(60*size)
		for i := range in {
			in[i] = byte(r.Uint32())
		}
		for i := range out {
			out[i] = 9
		}
		s := &Resampler{picks: make([]uint32, 60)}
		var want []byte
		for i := range s.picks {
			if s.picks[i] = uint32(r.IntN(101)); i == len(s.picks)-1 { // behind it lies no memory
				s.picks[i] = 0
			}
			if pos := int(s.picks[i]); pos == 0 {
				want = append(want, make([]byte, size)...)
			} else {
				want = append(want, in[(pos-1)*size:pos*size]...)
			}
		}
		if s.gather(out, in, size); !bytes.Equal(out, want) {
			t.Errorf("size %d: got %v, want %v", size, out, want)
		}
	}
}

// TestMerge: a missing sample comes from the next scene; one missing in both keeps what is stored, if that is not 0.
func TestMerge(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, share := range []int{1, 2, 9} { // one sample in so many is missing
		const n = 300
		bytesOf := func() []byte { // runs of a value, among them of 0
			out := make([]byte, 2*n)
			for i := range out {
				out[i] = byte(r.IntN(3))
			}
			return out
		}
		seen := func() []byte {
			out := make([]byte, n)
			for i := range out {
				out[i] = byte(min(r.IntN(share+1), 1))
			}
			return out
		}
		out, valid, next, nextValid := bytesOf(), seen(), bytesOf(), seen()
		wantOut, wantValid, want := bytes.Clone(out), bytes.Clone(valid), 0
		for i := range n {
			sample := wantOut[2*i : 2*i+2]
			if valid[i] == 0 && (nextValid[i] == 1 || sample[0] == 0 && sample[1] == 0) {
				copy(sample, next[2*i:])
				wantValid[i] = nextValid[i]
				want += int(nextValid[i])
			}
		}
		got := merge(out, valid, next, nextValid, 2)
		if got != want || !bytes.Equal(out, wantOut) || !bytes.Equal(valid, wantValid) {
			t.Errorf("one in %d is missing: got %d samples, want %d", share, got, want)
		}
	}
}
