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
	for symbol, weight := range weights {
		if weight == 0 {
			continue
		}
		pos, size := start[weight], 1<<(weight-1)
		start[weight] += size
		entry := uint32(symbol)<<16 | uint32(log+1-int(weight))
		run := table[pos : pos+size]
		for i := range run {
			run[i] = entry
		}
	}
}

// DecodeHuffman16 fills dst with two-byte symbols from one stream. It reports whether that takes exactly the
// bits of the stream. table has 1<<log entries, log >= 1.
func DecodeHuffman16(dst, src []byte, table []uint32, log int) bool {
	var reader backBits
	return reader.open(src) && finish16(dst, &reader, table, log)
}

// finish16 fills dst symbol by symbol.
func finish16(dst []byte, reader *backBits, table []uint32, log int) bool {
	shift := 64 - uint(log)
	for i := 0; i+2 <= len(dst); i += 2 {
		entry := table[reader.peek()>>(shift&63)]
		if reader.bits -= int(entry & 63); reader.bits < 0 {
			return false
		}
		dst[i], dst[i+1] = byte(entry>>16), byte(entry>>24)
	}
	return reader.bits == 0
}

// maxThree16 is the longest code that fits three times into a word: of its 64 bits, 56 are valid at any bit of its
// last byte.
const maxThree16 = 18

// DecodeHuffman16x4 is DecodeHuffman16 for four streams, which are decoded in step because a look into the
// table takes long and depends on the one before.
func DecodeHuffman16x4(dst, src *[4][]byte, table []uint32, log int) bool {
	var readers [4]backBits
	for i := range readers {
		if !readers[i].open(src[i]) {
			return false
		}
	}
	done := 0
	if log <= maxThree16 {
		done = three16(dst, &readers, table, uint(64-log))
	}
	for i := range readers {
		if !finish16(dst[i][done:], &readers[i], table, log) {
			return false
		}
	}
	return true
}

// three16 decodes the fronts of four streams in step, three symbols from each word, as long as whole words can
// be read and written. It returns the bytes done of each. b is as in four5Go.
func three16(dst *[4][]byte, readers *[4]backBits, table []uint32, shift uint) int {
	src0, src1, src2, src3 := readers[0].src, readers[1].src, readers[2].src, readers[3].src
	shortest := min(len(dst[0]), len(dst[1]), len(dst[2]), len(dst[3]))
	if len(src0) < 8 || len(src1) < 8 || len(src2) < 8 || len(src3) < 8 {
		return 0
	}
	pos0, pos1, pos2, pos3 := len(src0)-8, len(src1)-8, len(src2)-8, len(src3)-8
	b0 := uint64(1) << (8*len(src0) - readers[0].bits)
	b1 := uint64(1) << (8*len(src1) - readers[1].bits)
	b2 := uint64(1) << (8*len(src2) - readers[2].bits)
	b3 := uint64(1) << (8*len(src3) - readers[3].bits)
	out0, out1, out2, out3 := dst[0][:shortest], dst[1][:shortest], dst[2][:shortest], dst[3][:shortest]
	shift &= 63
	i := 0
	for ; i+8 <= shortest && (pos0-8)|(pos1-8)|(pos2-8)|(pos3-8) >= 0; i += 6 {
		used := bits.TrailingZeros64(b0)
		pos0 -= used >> 3
		b0 = (binary.LittleEndian.Uint64(src0[pos0:]) | 1) << (used & 7)
		used = bits.TrailingZeros64(b1)
		pos1 -= used >> 3
		b1 = (binary.LittleEndian.Uint64(src1[pos1:]) | 1) << (used & 7)
		used = bits.TrailingZeros64(b2)
		pos2 -= used >> 3
		b2 = (binary.LittleEndian.Uint64(src2[pos2:]) | 1) << (used & 7)
		used = bits.TrailingZeros64(b3)
		pos3 -= used >> 3
		b3 = (binary.LittleEndian.Uint64(src3[pos3:]) | 1) << (used & 7)

		e0, e1, e2, e3 := table[b0>>shift], table[b1>>shift], table[b2>>shift], table[b3>>shift]
		b0, b1, b2, b3 = b0<<(e0&63), b1<<(e1&63), b2<<(e2&63), b3<<(e3&63)
		f0, f1, f2, f3 := table[b0>>shift], table[b1>>shift], table[b2>>shift], table[b3>>shift]
		b0, b1, b2, b3 = b0<<(f0&63), b1<<(f1&63), b2<<(f2&63), b3<<(f3&63)
		g0, g1, g2, g3 := table[b0>>shift], table[b1>>shift], table[b2>>shift], table[b3>>shift]
		b0, b1, b2, b3 = b0<<(g0&63), b1<<(g1&63), b2<<(g2&63), b3<<(g3&63)
		// The fourth symbol of a word is not one yet: the next round writes over it.
		binary.LittleEndian.PutUint64(out0[i:i+8], uint64(e0>>16|f0&^0xffff)|uint64(g0>>16)<<32)
		binary.LittleEndian.PutUint64(out1[i:i+8], uint64(e1>>16|f1&^0xffff)|uint64(g1>>16)<<32)
		binary.LittleEndian.PutUint64(out2[i:i+8], uint64(e2>>16|f2&^0xffff)|uint64(g2>>16)<<32)
		binary.LittleEndian.PutUint64(out3[i:i+8], uint64(e3>>16|f3&^0xffff)|uint64(g3>>16)<<32)
	}
	readers[0].bits = 8*pos0 + 64 - bits.TrailingZeros64(b0)
	readers[1].bits = 8*pos1 + 64 - bits.TrailingZeros64(b1)
	readers[2].bits = 8*pos2 + 64 - bits.TrailingZeros64(b2)
	readers[3].bits = 8*pos3 + 64 - bits.TrailingZeros64(b3)
	return i
}
