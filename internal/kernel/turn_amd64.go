//go:build !purego && !twins

package kernel

// reversals move the numbers of 1, 2 and 4 bytes of each half of a vector to the other end of the half.
var reversals = makeReversals()

func makeReversals() (out [3][32]byte) {
	for e := range out {
		size := 1 << e
		for i := range out[e] {
			out[e][i] = byte((15-i%16)/size*size + i%size)
		}
	}
	return out
}

// reverseSIMD does the first part of reverse, and returns how many bytes that is.
func reverseSIMD(dst, src []byte, size int) int {
	n := len(dst) / 32
	if !hasAVX2 || n == 0 || size > 4 {
		return 0
	}
	_ = src[len(dst)-1]
	reverseAVX2(&dst[0], &src[len(src)-32], n, &reversals[size/2][0])
	return 32 * n
}

// turnSIMD does the first columns of turn, and returns how many these are.
func turnSIMD(dst, src []byte, first, strideX, cols, size int, mirrored bool) int {
	block := 16 / size
	n := cols / block
	if !hasAVX2 || n == 0 || size > 2 {
		return 0
	}
	last := first + (n*block-1)*strideX
	_, _ = src[first*size], src[last*size]
	_, _ = src[(first+TurnedRows)*size-1], src[(last+TurnedRows)*size-1]
	_ = dst[TurnedRows*TurnedCols*size-1]
	top, pitch := 0, TurnedCols*size
	if mirrored {
		top, pitch = (TurnedRows-1)*pitch, -pitch
	}
	if size == 1 {
		turn8AVX2(&dst[top], &src[first], n, pitch, strideX)
	} else {
		turn16AVX2(&dst[top], &src[first*size], n, pitch, strideX*size)
	}
	return n * block
}

// reverseAVX2 writes n blocks of 32 bytes. last is the last block of the source.
//
//go:noescape
func reverseAVX2(dst, last *byte, n int, mask *byte)

// turn8AVX2 transposes n blocks of 16 lines of 16 bytes. pitch is from a row of dst to the next, step from a line of
// src to the next, in bytes.
//
//go:noescape
func turn8AVX2(dst, src *byte, n, pitch, step int)

// turn16AVX2 is turn8AVX2 for blocks of 8 lines of 16 numbers of two bytes.
//
//go:noescape
func turn16AVX2(dst, src *byte, n, pitch, step int)
