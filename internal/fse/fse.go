// Package fse reads what streams of finite state entropy say of their tables, in OpenZL frames and zstd frames alike.
package fse

import (
	"encoding/binary"
	"math/bits"
)

// minLog is the logarithm of the smallest sum of counts.
const minLog = 5

// Counts reads the counts from which FSE tables are built into norm, where -1 means "less than one". It
// returns the number of symbols, how many bytes of src they take, and whether src begins with a valid list.
// norm has room for 256.
func Counts(norm []int16, src []byte) (symbols, size int, ok bool) {
	pos := 0
	peek := func() uint32 { // the next 25 bits at least, zero past the end
		if start := pos >> 3; start+4 <= len(src) {
			return binary.LittleEndian.Uint32(src[start:]) >> (pos & 7)
		}
		var partial uint64
		for i := range 4 {
			if index := pos>>3 + i; index < len(src) {
				partial |= uint64(src[index]) << (8 * i)
			}
		}
		return uint32(partial >> (pos & 7))
	}
	log := int(peek()&15) + minLog
	pos = 4
	if log > 15 {
		return 0, 0, false
	}
	left, limit := 1<<log+1, 1<<log // sum of the remaining counts plus one; 2^(bits-1)
	n := 0
	for left > 1 && n < 256 && pos <= 8*len(src) {
		// Small counts take one bit less, because the largest value that is left does not need all codes.
		next := int(peek())
		short := 2*limit - 1 - left
		count := next & (limit - 1)
		width := bits.Len(uint(limit)) - 1
		if count >= short {
			if count = next & (2*limit - 1); count >= limit {
				count -= short
			}
			width++
		}
		pos += width
		count--
		left -= max(count, -count)
		norm[n] = int16(count)
		n++
		for left < limit && limit > 1 {
			limit >>= 1
		}
		if count != 0 {
			continue
		}
		// A zero is followed by the number of further zeros, in steps of up to three.
		for repeats := 3; repeats == 3; {
			if pos > 8*len(src) {
				return 0, 0, false
			}
			repeats = int(peek() & 3)
			pos += 2
			for range repeats {
				if n == 256 {
					return 0, 0, false
				}
				norm[n] = 0
				n++
			}
		}
	}
	size = (pos + 7) >> 3
	return n, size, left == 1 && size <= len(src)
}
