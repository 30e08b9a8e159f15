package cursor

import (
	"math/rand/v2"
	"slices"
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

// TestUnpackGivesEveryBit compares numbers of every width and count with their bits read one by one, from bytes that
// end with the last number, and from bytes with others behind it.
func TestUnpackGivesEveryBit(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for width := range 65 {
		for _, count := range []int{0, 1, 7, 8, 9, 31, 64, 250} {
			src := make([]byte, (count*width+7)/8, (count*width+7)/8+20)
			for i := range src[:cap(src)] {
				src[:cap(src)][i] = byte(random.Uint32())
			}
			want := make([]uint64, count)
			for i := range count * width {
				want[i/width] |= uint64(src[i/8]>>(i%8)&1) << (i % width)
			}
			for _, bytes := range [][]byte{src, src[:cap(src)]} {
				same[uint64](t, want, bytes, width)
				if width <= 32 {
					same[uint32](t, want, bytes, width)
				}
				if width <= 16 {
					same[uint16](t, want, bytes, width)
				}
				if width <= 8 {
					same[uint8](t, want, bytes, width)
				}
			}
		}
	}
}

func same[T uint8 | uint16 | uint32 | uint64](t *testing.T, want []uint64, src []byte, width int) {
	got := make([]T, len(want))
	Unpack(got, src, width)
	if !slices.EqualFunc(got, want, func(a T, b uint64) bool { return uint64(a) == b }) {
		t.Fatalf("%d numbers of %d bits: %v, want %v", len(want), width, got, want)
	}
}
