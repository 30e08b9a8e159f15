//go:build !purego && !twins

package picture

import "testing"

func TestUnfilterWithoutVectors(t *testing.T) {
	if !hasAVX2 {
		t.Skip("this processor has none")
	}
	defer func() { hasAVX2 = true }()
	hasAVX2 = false
	TestUnfilterAgainstTheSpecification(t)
}

// TestVectorsStayInTheirRows: the loops do all pixels behind which 8 bytes can be loaded, and refuse rows that are
// shorter than the one they write, before they load anything.
func TestVectorsStayInTheirRows(t *testing.T) {
	if !hasAVX2 {
		t.Skip("this processor has none")
	}
	refuses := func(run func()) (refused bool) {
		defer func() { refused = recover() != nil }()
		run()
		return false
	}
	room := func(n int) []byte { return make([]byte, n, n+64) } // what is loaded behind a row is there
	for size := 1; size <= 9; size++ {
		for length := range 100 {
			pixels := 0
			for size > 1 && size < 9 && pixels*size+filterLoad <= length {
				pixels++
			}
			out, last := room(length), (pixels-1)*size+filterLoad
			for _, simd := range []func(out, in, up []byte, size int) int{averageSIMD, paethSIMD} {
				if got := simd(out, room(length), room(length), size); got != pixels*size {
					t.Errorf("%d of %d bytes, pixels of %d: want %d", got, length, size, pixels*size)
				}
				for short := max(last-2, 0); pixels > 0 && short < last; short++ {
					if !refuses(func() { simd(out, room(short), room(length), size) }) ||
						!refuses(func() { simd(out, room(length), room(short), size) }) {
						t.Errorf("pixels of %d, %d bytes of %d: not refused", size, short, length)
					}
				}
			}
			count := length / 32 * 32
			if got := addSIMD(out, room(length), room(length)); got != count {
				t.Errorf("%d of %d bytes, want %d", got, length, count)
			}
			if count > 0 && (!refuses(func() { addSIMD(out, room(count-1), room(length)) }) ||
				!refuses(func() { addSIMD(out, room(length), room(count-1)) })) {
				t.Errorf("%d bytes of %d: not refused", count-1, length)
			}
		}
	}
	defer func() { hasAVX2 = true }()
	hasAVX2 = false
	long := make([]byte, 100)
	if addSIMD(long, long, long)+averageSIMD(long, long, long, 1)+paethSIMD(long, long, long, 4) != 0 {
		t.Error("vectors are used that the processor has not")
	}
}
