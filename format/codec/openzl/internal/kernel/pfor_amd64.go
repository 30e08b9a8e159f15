//go:build amd64 && !purego && !twins

package kernel

import (
	"golang.org/x/sys/cpu"

	"github.com/chaski-eo/chaski/internal/cast"
)

// hasPlanar says whether the loops in pfor_amd64.s can run here.
var hasPlanar = cpu.X86.HasAVX2

// planarZigzag8 to planarZigzag64 write n vectors of 32 bytes, at least 1, of numbers minus W + N - NW, mapped by
// zigzag. src is in a row, after its first number, and above in the row before.
//
//go:noescape
func planarZigzag8(dst, src, above *byte, n int)

//go:noescape
func planarZigzag16(dst, src, above *byte, n int)

//go:noescape
func planarZigzag32(dst, src, above *byte, n int)

//go:noescape
func planarZigzag64(dst, src, above *byte, n int)

// pforUnion returns the bits that are set in a word of 8 bytes of n vectors of 32 bytes, at least 1.
//
//go:noescape
func pforUnion(block *byte, n int) uint64

// pforBelow8 to pforBelow64 return how many numbers of n vectors of 32 bytes, 1 to 64, have no bit of their part of
// mask.
//
//go:noescape
func pforBelow8(block *byte, n int, mask uint64) int

//go:noescape
func pforBelow16(block *byte, n int, mask uint64) int

//go:noescape
func pforBelow32(block *byte, n int, mask uint64) int

//go:noescape
func pforBelow64(block *byte, n int, mask uint64) int

// vector is how many bytes the loops do at a time.
const vector = 32

// planarZigzagRow is planarZigzagGo from the second number on, faster. It reports false if a row is too short for it.
func planarZigzagRow(dst, src, above []byte, width int) bool {
	size := len(src) - width
	if !hasPlanar || size < vector {
		return false
	}
	loop := cast.ByWidth(width, planarZigzag8, planarZigzag16, planarZigzag32, planarZigzag64)
	loop(&dst[width], &src[width], &above[width], size/vector)
	if size%vector > 0 { // the last vector does some numbers again
		last := len(src) - vector
		loop(&dst[last], &src[last], &above[last], 1)
	}
	return true
}

// union is unionGo, faster. A block has 256 bytes or more.
func union(block []byte) uint64 {
	if !hasPlanar {
		return unionGo(block)
	}
	return pforUnion(&block[0], len(block)/vector)
}

// below is belowGo, faster.
func below(block []byte, width int, mask uint64) int {
	if !hasPlanar {
		return belowGo(block, width, mask)
	}
	loop := cast.ByWidth(width, pforBelow8, pforBelow16, pforBelow32, pforBelow64)
	return loop(&block[0], len(block)/vector, mask)
}
