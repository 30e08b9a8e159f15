package kernel

import (
	"encoding/binary"
	"math/bits"
)

// backBits reads the bits of a stream from last to first, as FSE and Huffman streams are written. The highest
// set bit of the last byte is the end mark, which is not part of the stream.
type backBits struct {
	src  []byte
	bits int // bits not yet read; negative after a read past the start
}

// open sets the reader to the end of src and reports whether there is an end mark.
func (r *backBits) open(src []byte) bool {
	if len(src) == 0 || src[len(src)-1] == 0 {
		return false
	}
	r.src = src
	r.bits = 8*len(src) - 9 + bits.Len8(src[len(src)-1])
	return true
}

// peek returns the next bits, left-aligned: at least 56. Bits before the start of src are zero.
func (r *backBits) peek() uint64 {
	if r.bits <= 0 {
		return 0
	}
	if end := (r.bits + 7) >> 3; end >= 8 {
		return binary.LittleEndian.Uint64(r.src[end-8:end]) << (8*end - r.bits)
	}
	var word uint64
	end := (r.bits + 7) >> 3
	for i := range end {
		word |= uint64(r.src[i]) << (8 * i)
	}
	return word << (64 - r.bits)
}

// read reads n bits, 0 <= n <= 56.
func (r *backBits) read(n int) uint64 {
	value := r.peek() >> 1 >> (63 - n)
	r.bits -= n
	return value
}
