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

// pforAbove8 to pforAbove64 write to masks, for each of n vectors of 32 bytes, at least 1, a bit for each byte: 1 if
// its number has a bit of its part of mask.
//
//go:noescape
func pforAbove8(masks *uint32, block *byte, n int, mask uint64)

//go:noescape
func pforAbove16(masks *uint32, block *byte, n int, mask uint64)

//go:noescape
func pforAbove32(masks *uint32, block *byte, n int, mask uint64)

//go:noescape
func pforAbove64(masks *uint32, block *byte, n int, mask uint64)

// pforPack writes the lowest nbits of the numbers in n words of 16 bytes, at least 1. lowest has the lowest k bits of
// each lane at k, up to wordBits.
//
//go:noescape
func pforPack(dst, src *byte, n int, lowest *uint64, nbits, wordBits int)

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

// above is aboveGo, faster.
func above(masks *aboveMasks, block []byte, width int, mask uint64) {
	if !hasPlanar {
		aboveGo(masks, block, width, mask)
		return
	}
	first, n := &block[0], len(block)/vector
	switch width { // a call by a variable would move masks to the heap
	case 1:
		pforAbove8(&masks[0], first, n, mask)
	case 2:
		pforAbove16(&masks[0], first, n, mask)
	case 4:
		pforAbove32(&masks[0], first, n, mask)
	default:
		pforAbove64(&masks[0], first, n, mask)
	}
}

// pack is packGo, faster.
func pack(dst, block []byte, lowest *laneMasks, nbits, width int) {
	if !hasPlanar {
		packGo(dst, block, lowest, nbits, width)
		return
	}
	pforPack(&dst[0], &block[0], len(block)/16, &lowest[0], nbits, 8*width)
}
