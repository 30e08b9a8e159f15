// Package kernel holds the inner loops of the OpenZL codecs: plain loops over memory of the caller. They
// allocate on their first use only and do not format errors. The comment of a loop states what it
// requires of its arguments; the bindings in package codecs ensure it.
package kernel

import "github.com/chaski-eo/chaski/internal/cast"

// LE returns element i of b as a little-endian number of w bytes, w being 1, 2, 4 or 8.
func LE(b []byte, i, w int) uint64 { return cast.Uint(b[i*w:], w) }

// PutLE stores v as element i of b, a little-endian number of w bytes, w being 1, 2, 4 or 8.
func PutLE(b []byte, i, w int, v uint64) { cast.PutUint(b[i*w:], w, v) }

// Lengths writes the numbers of width bytes in src to dst and returns their sum. It reports whether all of
// them fit in 32 bits. dst has one element per number.
func Lengths(dst []uint32, src []byte, width int) (uint64, bool) {
	var sum, union uint64
	for i := range dst {
		length := LE(src, i, width)
		dst[i] = uint32(length)
		sum += length & 0xffffffff
		union |= length
	}
	return sum, union>>32 == 0
}

// Sum adds up values.
func Sum(values []uint32) uint64 {
	var sum uint64
	for _, value := range values {
		sum += uint64(value)
	}
	return sum
}
