package cursor

import (
	"math/rand/v2"
	"testing"
)

// TestBits: numbers of any width come back as they were packed, and the last byte has no other bits.
func TestBits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		width, n := r.IntN(65), r.IntN(40)
		values := make([]uint64, n)
		p := Packer{Dst: []byte{7}}
		for i := range values {
			values[i] = r.Uint64() & (1<<width - 1)
			p.Put(values[i], width)
		}
		b := p.Bytes()
		if len(b) != 1+(n*width+7)/8 || b[0] != 7 {
			t.Fatalf("%d numbers of %d bits take %d bytes", n, width, len(b))
		}
		u := Unpacker{Src: b[1:]}
		for i, want := range values {
			if got := u.Get(width); got != want {
				t.Fatalf("number %d of %d bits is %x, not %x", i, width, got, want)
			}
		}
		if u.Spare() != 0 {
			t.Errorf("%d numbers of %d bits leave %x", n, width, u.Spare())
		}
	}
	u := Unpacker{Src: []byte{0xff}}
	if u.Get(3); u.Spare() != 0x1f {
		t.Errorf("5 bits are left as %x", u.Spare())
	}
}
