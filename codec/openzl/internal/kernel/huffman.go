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
	for s, w := range weights {
		if w == 0 {
			continue
		}
		n := 1 << (w - 1)
		pos := start[w]
		start[w] += n
		e := uint16(s)<<8 | uint16(log+1-int(w))
		t := h.t[pos<<scale : (pos+n)<<scale]
		for i := range t {
			t[i] = e
		}
	}
	return true
}

// codeStarts sets start[w] to where the codes of weight w begin, when all codes fill a table in the
// order of their weights. start has one element more than the greatest weight, and is all 0.
func codeStarts(start []int, weights []byte) {
	for _, w := range weights {
		start[w+1] += 1 << w >> 1
	}
	start[1] = 0
	for w := 2; w < len(start); w++ {
		start[w] += start[w-1]
	}
}

// HuffmanLog returns the length of the longest code of a complete code of at least two symbols and
// at most limit bits, and whether weights are such a code.
func HuffmanLog(weights []byte, limit int) (int, bool) {
	var sum uint64
	used := 0
	for _, w := range weights {
		if int(w) > limit {
			return 0, false
		}
		sum += 1 << w >> 1
		if w != 0 {
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
	var r backBits
	return r.open(src) && h.finish(dst, &r)
}

// finish fills dst symbol by symbol.
func (h *HuffmanTable) finish(dst []byte, r *backBits) bool {
	// Four symbols of at most 12 bits per word, since peek returns at least 56 bits.
	for len(dst) >= 4 && r.left >= 4*MaxHuffmanBits {
		w := r.peek()
		for i := range 4 {
			e := h.t[w>>(64-MaxHuffmanBits)]
			w <<= e & 63
			r.left -= int(e & 63)
			dst[i] = byte(e >> 8)
		}
		dst = dst[4:]
	}
	for i := range dst {
		e := h.t[r.peek()>>(64-MaxHuffmanBits)]
		if r.left -= int(e & 63); r.left < 0 {
			return false
		}
		dst[i] = byte(e >> 8)
	}
	return r.left == 0
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
	var r [4]backBits
	var out [4][]byte
	rest := src[6:]
	for i := range 4 {
		n, d := len(rest), dst[3*quarter:]
		if i < 3 {
			n, d = int(binary.LittleEndian.Uint16(src[2*i:])), dst[i*quarter:(i+1)*quarter]
		}
		if n > len(rest) || !r[i].open(rest[:n]) {
			return false
		}
		out[i], rest = d, rest[n:]
	}
	done := 0
	if h.worthQuads(len(dst), len(src)) {
		h.fourQuads(&out, &r)
	} else if h.longest <= 11 {
		done = h.four5(&out, &r)
	}
	for i := range 4 {
		if !h.finish(out[i][done:], &r[i]) {
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
// many bits are used, so that no counter is needed.
func (h *HuffmanTable) four5Go(out *[4][]byte, r *[4]backBits) int {
	s0, s1, s2, s3 := r[0].src, r[1].src, r[2].src, r[3].src
	if len(s0) < 8 || len(s1) < 8 || len(s2) < 8 || len(s3) < 8 {
		return 0
	}
	p0, p1, p2, p3 := len(s0)-8, len(s1)-8, len(s2)-8, len(s3)-8
	b0 := uint64(1) << (8*len(s0) - r[0].left)
	b1 := uint64(1) << (8*len(s1) - r[1].left)
	b2 := uint64(1) << (8*len(s2) - r[2].left)
	b3 := uint64(1) << (8*len(s3) - r[3].left)
	t, n := &h.t, len(out[3])
	d0, d1, d2, d3 := out[0][:n], out[1][:n], out[2][:n], out[3][:n]
	i := 0
	for ; i+8 <= n && (p0-8)|(p1-8)|(p2-8)|(p3-8) >= 0; i += 5 {
		var e uint16
		var w0, w1, w2, w3 uint64
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

		e = t[b0>>top]
		b0, w0 = b0<<(e&63), uint64(e>>8)
		e = t[b1>>top]
		b1, w1 = b1<<(e&63), uint64(e>>8)
		e = t[b2>>top]
		b2, w2 = b2<<(e&63), uint64(e>>8)
		e = t[b3>>top]
		b3, w3 = b3<<(e&63), uint64(e>>8)
		e = t[b0>>top]
		b0, w0 = b0<<(e&63), w0|uint64(e&0xff00)
		e = t[b1>>top]
		b1, w1 = b1<<(e&63), w1|uint64(e&0xff00)
		e = t[b2>>top]
		b2, w2 = b2<<(e&63), w2|uint64(e&0xff00)
		e = t[b3>>top]
		b3, w3 = b3<<(e&63), w3|uint64(e&0xff00)
		e = t[b0>>top]
		b0, w0 = b0<<(e&63), w0|uint64(e&0xff00)<<8
		e = t[b1>>top]
		b1, w1 = b1<<(e&63), w1|uint64(e&0xff00)<<8
		e = t[b2>>top]
		b2, w2 = b2<<(e&63), w2|uint64(e&0xff00)<<8
		e = t[b3>>top]
		b3, w3 = b3<<(e&63), w3|uint64(e&0xff00)<<8
		e = t[b0>>top]
		b0, w0 = b0<<(e&63), w0|uint64(e&0xff00)<<16
		e = t[b1>>top]
		b1, w1 = b1<<(e&63), w1|uint64(e&0xff00)<<16
		e = t[b2>>top]
		b2, w2 = b2<<(e&63), w2|uint64(e&0xff00)<<16
		e = t[b3>>top]
		b3, w3 = b3<<(e&63), w3|uint64(e&0xff00)<<16
		e = t[b0>>top]
		b0, w0 = b0<<(e&63), w0|uint64(e&0xff00)<<24
		binary.LittleEndian.PutUint64(d0[i:i+8], w0)
		e = t[b1>>top]
		b1, w1 = b1<<(e&63), w1|uint64(e&0xff00)<<24
		binary.LittleEndian.PutUint64(d1[i:i+8], w1)
		e = t[b2>>top]
		b2, w2 = b2<<(e&63), w2|uint64(e&0xff00)<<24
		binary.LittleEndian.PutUint64(d2[i:i+8], w2)
		e = t[b3>>top]
		b3, w3 = b3<<(e&63), w3|uint64(e&0xff00)<<24
		binary.LittleEndian.PutUint64(d3[i:i+8], w3)
	}
	r[0].left = 8*p0 + 64 - bits.TrailingZeros64(b0)
	r[1].left = 8*p1 + 64 - bits.TrailingZeros64(b1)
	r[2].left = 8*p2 + 64 - bits.TrailingZeros64(b2)
	r[3].left = 8*p3 + 64 - bits.TrailingZeros64(b3)
	return i
}
