package kernel

import (
	"encoding/binary"
	"math/bits"
)

// MaxHuffman16Bits is the longest code of a two-byte symbol.
const MaxHuffman16Bits = 20

// BuildHuffman16 builds a table of 1<<log entries, indexed by the next log bits. Each entry has the symbol in
// its upper half and the length of its code in its lower half. log is HuffmanLog of weights.
func BuildHuffman16(table []uint32, weights []byte, log int) {
	var start [MaxHuffman16Bits + 2]int
	codeStarts(start[:], weights)
	for s, w := range weights {
		if w == 0 {
			continue
		}
		pos, n := start[w], 1<<(w-1)
		start[w] += n
		e := uint32(s)<<16 | uint32(log+1-int(w))
		t := table[pos : pos+n]
		for i := range t {
			t[i] = e
		}
	}
}

// DecodeHuffman16 fills dst with two-byte symbols from one stream. It reports whether that takes exactly the
// bits of the stream. table has 1<<log entries, log >= 1.
func DecodeHuffman16(dst, src []byte, table []uint32, log int) bool {
	var r backBits
	return r.open(src) && finish16(dst, &r, table, log)
}

// finish16 fills dst symbol by symbol.
func finish16(dst []byte, r *backBits, table []uint32, log int) bool {
	shift := 64 - uint(log)
	for i := 0; i+2 <= len(dst); i += 2 {
		e := table[r.peek()>>(shift&63)]
		if r.left -= int(e & 63); r.left < 0 {
			return false
		}
		dst[i], dst[i+1] = byte(e>>16), byte(e>>24)
	}
	return r.left == 0
}

// maxThree16 is the longest code that fits three times into a word: of its 64 bits, 56 are valid at any bit of its
// last byte.
const maxThree16 = 18

// DecodeHuffman16x4 is DecodeHuffman16 for four streams, which are decoded in step because a look into the
// table takes long and depends on the one before.
func DecodeHuffman16x4(dst, src *[4][]byte, table []uint32, log int) bool {
	var r [4]backBits
	for i := range r {
		if !r[i].open(src[i]) {
			return false
		}
	}
	done := 0
	if log <= maxThree16 {
		done = three16(dst, &r, table, uint(64-log))
	}
	for i := range r {
		if !finish16(dst[i][done:], &r[i], table, log) {
			return false
		}
	}
	return true
}

// three16 decodes the fronts of four streams in step, three symbols from each word, as long as whole words can
// be read and written. It returns the bytes done of each. b is as in four5Go.
func three16(dst *[4][]byte, r *[4]backBits, table []uint32, shift uint) int {
	s0, s1, s2, s3 := r[0].src, r[1].src, r[2].src, r[3].src
	n := min(len(dst[0]), len(dst[1]), len(dst[2]), len(dst[3]))
	if len(s0) < 8 || len(s1) < 8 || len(s2) < 8 || len(s3) < 8 {
		return 0
	}
	p0, p1, p2, p3 := len(s0)-8, len(s1)-8, len(s2)-8, len(s3)-8
	b0 := uint64(1) << (8*len(s0) - r[0].left)
	b1 := uint64(1) << (8*len(s1) - r[1].left)
	b2 := uint64(1) << (8*len(s2) - r[2].left)
	b3 := uint64(1) << (8*len(s3) - r[3].left)
	d0, d1, d2, d3 := dst[0][:n], dst[1][:n], dst[2][:n], dst[3][:n]
	shift &= 63
	i := 0
	for ; i+8 <= n && (p0-8)|(p1-8)|(p2-8)|(p3-8) >= 0; i += 6 {
		u := bits.TrailingZeros64(b0)
		p0 -= u >> 3
		b0 = (binary.LittleEndian.Uint64(s0[p0:]) | 1) << (u & 7)
		u = bits.TrailingZeros64(b1)
		p1 -= u >> 3
		b1 = (binary.LittleEndian.Uint64(s1[p1:]) | 1) << (u & 7)
		u = bits.TrailingZeros64(b2)
		p2 -= u >> 3
		b2 = (binary.LittleEndian.Uint64(s2[p2:]) | 1) << (u & 7)
		u = bits.TrailingZeros64(b3)
		p3 -= u >> 3
		b3 = (binary.LittleEndian.Uint64(s3[p3:]) | 1) << (u & 7)

		e0, e1, e2, e3 := table[b0>>shift], table[b1>>shift], table[b2>>shift], table[b3>>shift]
		b0, b1, b2, b3 = b0<<(e0&63), b1<<(e1&63), b2<<(e2&63), b3<<(e3&63)
		f0, f1, f2, f3 := table[b0>>shift], table[b1>>shift], table[b2>>shift], table[b3>>shift]
		b0, b1, b2, b3 = b0<<(f0&63), b1<<(f1&63), b2<<(f2&63), b3<<(f3&63)
		g0, g1, g2, g3 := table[b0>>shift], table[b1>>shift], table[b2>>shift], table[b3>>shift]
		b0, b1, b2, b3 = b0<<(g0&63), b1<<(g1&63), b2<<(g2&63), b3<<(g3&63)
		// The fourth symbol of a word is not one yet: the next round writes over it.
		binary.LittleEndian.PutUint64(d0[i:i+8], uint64(e0>>16|f0&^0xffff)|uint64(g0>>16)<<32)
		binary.LittleEndian.PutUint64(d1[i:i+8], uint64(e1>>16|f1&^0xffff)|uint64(g1>>16)<<32)
		binary.LittleEndian.PutUint64(d2[i:i+8], uint64(e2>>16|f2&^0xffff)|uint64(g2>>16)<<32)
		binary.LittleEndian.PutUint64(d3[i:i+8], uint64(e3>>16|f3&^0xffff)|uint64(g3>>16)<<32)
	}
	r[0].left = 8*p0 + 64 - bits.TrailingZeros64(b0)
	r[1].left = 8*p1 + 64 - bits.TrailingZeros64(b1)
	r[2].left = 8*p2 + 64 - bits.TrailingZeros64(b2)
	r[3].left = 8*p3 + 64 - bits.TrailingZeros64(b3)
	return i
}
