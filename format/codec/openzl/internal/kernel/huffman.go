package kernel

import (
	"encoding/binary"
	"math/bits"
)

// MaxHuffmanBits is the length of the longest code of a byte symbol.
const MaxHuffmanBits = 12

// HuffmanTable decodes byte symbols: indexed by the next 12 bits, each entry holds the symbol in
// its upper and the length of its code in its lower byte.
type HuffmanTable struct {
	t       [1 << MaxHuffmanBits]uint16
	quads   quadTable
	windows [1 << quadBits]uint64 // see buildQuads
	longest int
}

// Build builds the table from the weights of the symbols: 0 for a symbol that does not occur, otherwise the
// length of the longest code plus one minus the length of its own. It reports whether the weights are a
// complete code of at least two symbols and at most MaxHuffmanBits bits.
func (h *HuffmanTable) Build(weights []byte) bool {
	log, ok := HuffmanLog(weights, MaxHuffmanBits)
	if !ok || len(weights) > 256 {
		return false
	}
	h.longest = log
	var start [MaxHuffmanBits + 2]int
	codeStarts(start[:], weights)
	scale := MaxHuffmanBits - log
	for symbol, weight := range weights {
		if weight == 0 {
			continue
		}
		size := 1 << (weight - 1)
		pos := start[weight]
		start[weight] += size
		entry := uint16(symbol)<<8 | uint16(log+1-int(weight))
		run := h.t[pos<<scale : (pos+size)<<scale]
		for i := range run {
			run[i] = entry
		}
	}
	return true
}

// codeStarts sets start[weight] to where the codes of that weight begin, when all codes fill a table in the order of
// their weights. start has one element more than the greatest weight, and is all 0.
func codeStarts(start []int, weights []byte) {
	for _, weight := range weights {
		start[weight+1] += 1 << weight >> 1
	}
	start[1] = 0
	for weight := 2; weight < len(start); weight++ {
		start[weight] += start[weight-1]
	}
}

// HuffmanLog returns the length of the longest code of a complete code of at least two symbols and
// at most limit bits, and whether weights are such a code.
func HuffmanLog(weights []byte, limit int) (int, bool) {
	var sum uint64
	used := 0
	for _, weight := range weights {
		if int(weight) > limit {
			return 0, false
		}
		sum += 1 << weight >> 1
		if weight != 0 {
			used++
		}
	}
	if used < 2 || sum&(sum-1) != 0 {
		return 0, false
	}
	log := bits.Len64(sum) - 1
	return log, log <= limit
}

// Decode1 fills dst from one stream. It reports whether that takes exactly the bits of the stream.
func (h *HuffmanTable) Decode1(dst, src []byte) bool {
	var reader backBits
	return reader.open(src) && h.finish(dst, &reader)
}

// finish fills dst symbol by symbol.
func (h *HuffmanTable) finish(dst []byte, reader *backBits) bool {
	// Four symbols of at most 12 bits per word, since peek returns at least 56 bits.
	for len(dst) >= 4 && reader.bits >= 4*MaxHuffmanBits {
		word := reader.peek()
		for i := range 4 {
			entry := h.t[word>>(64-MaxHuffmanBits)]
			word <<= entry & 63
			reader.bits -= int(entry & 63)
			dst[i] = byte(entry >> 8)
		}
		dst = dst[4:]
	}
	for i := range dst {
		entry := h.t[reader.peek()>>(64-MaxHuffmanBits)]
		if reader.bits -= int(entry & 63); reader.bits < 0 {
			return false
		}
		dst[i] = byte(entry >> 8)
	}
	return reader.bits == 0
}

// Decode4 fills dst from four streams. Each holds a quarter of it. It reports whether that takes
// exactly their bits. src begins with the sizes of the first three streams, two bytes each.
func (h *HuffmanTable) Decode4(dst, src []byte) bool {
	if len(src) < 10 {
		return false
	}
	quarter := (len(dst) + 3) / 4
	if 3*quarter > len(dst) {
		return false
	}
	var readers [4]backBits
	var out [4][]byte
	rest := src[6:]
	for i := range 4 {
		size, part := len(rest), dst[3*quarter:]
		if i < 3 {
			size, part = int(binary.LittleEndian.Uint16(src[2*i:])), dst[i*quarter:(i+1)*quarter]
		}
		if size > len(rest) || !readers[i].open(rest[:size]) {
			return false
		}
		out[i], rest = part, rest[size:]
	}
	done := 0
	if h.worthQuads(len(dst), len(src)) {
		h.fourQuads(&out, &readers)
	} else if h.longest <= 11 {
		done = h.four5(&out, &readers)
	}
	for i := range 4 {
		if !h.finish(out[i][done:], &readers[i]) {
			return false
		}
	}
	return true
}

// top is how far a word is shifted for the index of its first symbol.
const top = 64 - MaxHuffmanBits

// four5Go decodes the fronts of four streams in step, five symbols of at most 11 bits from each word, as long
// as whole words can be read and written. It returns the number of symbols per stream.
//
// b holds the bits of a stream left-aligned, followed by a one and zeros: the position of that one tells how
// many bits are used, so no counter is needed.
func (h *HuffmanTable) four5Go(out *[4][]byte, readers *[4]backBits) int {
	src0, src1, src2, src3 := readers[0].src, readers[1].src, readers[2].src, readers[3].src
	if len(src0) < 8 || len(src1) < 8 || len(src2) < 8 || len(src3) < 8 {
		return 0
	}
	pos0, pos1, pos2, pos3 := len(src0)-8, len(src1)-8, len(src2)-8, len(src3)-8
	b0 := uint64(1) << (8*len(src0) - readers[0].bits)
	b1 := uint64(1) << (8*len(src1) - readers[1].bits)
	b2 := uint64(1) << (8*len(src2) - readers[2].bits)
	b3 := uint64(1) << (8*len(src3) - readers[3].bits)
	table, count := &h.t, len(out[3])
	out0, out1, out2, out3 := out[0][:count], out[1][:count], out[2][:count], out[3][:count]
	i := 0
	for ; i+8 <= count && (pos0-8)|(pos1-8)|(pos2-8)|(pos3-8) >= 0; i += 5 {
		var e uint16
		var w0, w1, w2, w3 uint64
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

		e = table[b0>>top]
		b0, w0 = b0<<(e&63), uint64(e>>8)
		e = table[b1>>top]
		b1, w1 = b1<<(e&63), uint64(e>>8)
		e = table[b2>>top]
		b2, w2 = b2<<(e&63), uint64(e>>8)
		e = table[b3>>top]
		b3, w3 = b3<<(e&63), uint64(e>>8)
		e = table[b0>>top]
		b0, w0 = b0<<(e&63), w0|uint64(e&0xff00)
		e = table[b1>>top]
		b1, w1 = b1<<(e&63), w1|uint64(e&0xff00)
		e = table[b2>>top]
		b2, w2 = b2<<(e&63), w2|uint64(e&0xff00)
		e = table[b3>>top]
		b3, w3 = b3<<(e&63), w3|uint64(e&0xff00)
		e = table[b0>>top]
		b0, w0 = b0<<(e&63), w0|uint64(e&0xff00)<<8
		e = table[b1>>top]
		b1, w1 = b1<<(e&63), w1|uint64(e&0xff00)<<8
		e = table[b2>>top]
		b2, w2 = b2<<(e&63), w2|uint64(e&0xff00)<<8
		e = table[b3>>top]
		b3, w3 = b3<<(e&63), w3|uint64(e&0xff00)<<8
		e = table[b0>>top]
		b0, w0 = b0<<(e&63), w0|uint64(e&0xff00)<<16
		e = table[b1>>top]
		b1, w1 = b1<<(e&63), w1|uint64(e&0xff00)<<16
		e = table[b2>>top]
		b2, w2 = b2<<(e&63), w2|uint64(e&0xff00)<<16
		e = table[b3>>top]
		b3, w3 = b3<<(e&63), w3|uint64(e&0xff00)<<16
		e = table[b0>>top]
		b0, w0 = b0<<(e&63), w0|uint64(e&0xff00)<<24
		binary.LittleEndian.PutUint64(out0[i:i+8], w0)
		e = table[b1>>top]
		b1, w1 = b1<<(e&63), w1|uint64(e&0xff00)<<24
		binary.LittleEndian.PutUint64(out1[i:i+8], w1)
		e = table[b2>>top]
		b2, w2 = b2<<(e&63), w2|uint64(e&0xff00)<<24
		binary.LittleEndian.PutUint64(out2[i:i+8], w2)
		e = table[b3>>top]
		b3, w3 = b3<<(e&63), w3|uint64(e&0xff00)<<24
		binary.LittleEndian.PutUint64(out3[i:i+8], w3)
	}
	readers[0].bits = 8*pos0 + 64 - bits.TrailingZeros64(b0)
	readers[1].bits = 8*pos1 + 64 - bits.TrailingZeros64(b1)
	readers[2].bits = 8*pos2 + 64 - bits.TrailingZeros64(b2)
	readers[3].bits = 8*pos3 + 64 - bits.TrailingZeros64(b3)
	return i
}
