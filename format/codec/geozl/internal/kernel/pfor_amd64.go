//go:build amd64 && !purego && !twins

package kernel

import "golang.org/x/sys/cpu"

// hasVectors says whether the loops in pfor_amd64.s can run here. The loops for 8 and 16 bits need AVX2, too.
var hasVectors = cpu.X86.HasAVX

// unpack8 is pforBodyGo for numbers of 1 byte, and 1 to 7 bits a number.
//
//go:noescape
func unpack8(dst, src *byte, nbits int)

// unpack16 is the same for 2 bytes and 1 to 15 bits a number.
//
//go:noescape
func unpack16(dst, src *byte, nbits int)

// unpack32 is pforBodyGo for n+rest vectors of 16 bytes of dst, both at least 1, 4 bytes and 1 to 31 bits a number. The
// first n begin before the last word of src, the rest in it.
//
//go:noescape
func unpack32(dst, src *byte, n, rest, nbits int)

// unpack64 is the same for 8 bytes and 1 to 63 bits a number.
//
//go:noescape
func unpack64(dst, src *byte, n, rest, nbits int)

// pforBody is pforBodyGo, faster.
func pforBody(dst, src []byte, width, nbits int) {
	hasLoop := hasVectors && (width >= 4 || hasAVX2)
	if !hasLoop || nbits == 0 || nbits == 8*width {
		pforBodyGo(dst, src, width, nbits)
		return
	}
	dst, src = dst[:width*PforBlock], src[:nbits*PforBlock/8]
	switch width {
	case 1:
		unpack8(&dst[0], &src[0], nbits)
		return
	case 2:
		unpack16(&dst[0], &src[0], nbits)
		return
	}
	// The words of all lanes fill 16 bytes. There are at least two, so a number begins before the last.
	wordBits := 8 * width
	before := ((len(src)/16-1)*wordBits + nbits - 1) / nbits
	rest := len(dst)/16 - before
	if width == 4 {
		unpack32(&dst[0], &src[0], before, rest, nbits)
		return
	}
	unpack64(&dst[0], &src[0], before, rest, nbits)
}
