package kernel

import (
	"encoding/binary"
	"math/bits"
)

// Streams whose symbols take few bits are decoded up to four symbols at a time.
const (
	// quadBits is the number of bits that index the table: the longest code that the encoder writes.
	// The table then has 2048 entries of 8 bytes, so that it fits in half of a first-level cache.
	quadBits = 11
	// quadDensity is the limit in tenths of a bit per symbol. Denser streams have fewer than two
	// symbols in 11 bits, so that decoding one by one is faster.
	quadDensity = 55
)

// quadLeast is the number of symbols from which the table is worth building. Tests change it.
var quadLeast = 8 << 10

// quadTable is indexed by the next 11 bits. An entry holds how many bits its symbols take (8 bits), the number
// of symbols, 1 to 4 (8 bits), and from bit 32 on the symbols.
type quadTable [1 << quadBits]uint64

// buildQuads builds the table h.quads. The longest code has at most quadBits bits.
//
// It builds larger tables from smaller ones: the table of b bits lists the symbols in b bits. Where the
// first symbol takes l bits, it is the table of b-l bits with that symbol put before. Meanwhile entries
// hold the symbols in their upper half. Each byte of the lower half holds the number of symbols (4 bits)
// and the bits that they take (4 bits): for the first symbol, the first two, three and four, or as many as
// there are.
func (h *HuffmanTable) buildQuads() {
	var order [256]uint64 // what each symbol adds to an entry, in the order of the codes
	var lengths [256]uint8
	n := 0
	for i := 0; i < len(h.t); n++ {
		e := uint64(h.t[i])
		l := e & 15
		order[n&255], lengths[n&255] = e>>8<<32|(l|0x10)*0x01010101, uint8(l)
		i += 1 << (MaxHuffmanBits - l)
	}
	for b := range quadBits {
		table := h.windows[1<<b : 2<<b]
		pos := len(table)
		for k := n - 1; k >= 0 && int(lengths[k]) <= b; k-- {
			run := 1 << (b - int(lengths[k]))
			pos -= run
			putAhead(table[pos:pos+run], h.windows[run:2*run], order[k])
		}
		clear(table[:pos])
	}
	pos := len(h.quads)
	for k := n - 1; k >= 0; k-- {
		run := 1 << (quadBits - int(lengths[k]))
		pos -= run
		putLooks(h.quads[pos:pos+run], h.windows[run:2*run], order[k])
	}
}

// ahead masks the part of an entry that remains when another symbol is put before its symbols.
const ahead = 0xffffff00_ffffff00

// putAheadGo puts the symbol of add before the symbols of the entries of from. The slices have equal lengths.
func putAheadGo(to, from []uint64, add uint64) {
	to = to[:len(from)]
	for i, x := range from {
		to[i] = x<<8&ahead + add
	}
}

// putLooksGo is putAheadGo for the entries of a quadTable.
func putLooksGo(to, from []uint64, add uint64) {
	to = to[:len(from)]
	for i, x := range from {
		x = x<<8&ahead + add
		to[i] = x>>32<<32 | x>>20&0x700 | x>>24&15
	}
}

// worthQuads reports whether streams of size bytes hold enough symbols of few bits.
func (h *HuffmanTable) worthQuads(symbols, size int) bool {
	// 80 = 8 bits per byte times 10, since quadDensity counts tenths.
	return h.longest <= quadBits && symbols >= quadLeast && size*80 < symbols*quadDensity
}

// quadState is one of the streams that fourQuads decodes in step.
type quadState struct {
	src  []byte
	pos  int    // where in src the word was read
	bits uint64 // as in four5Go
	out  []byte
	at   int
}

// rounds returns how many rounds of five lookups need no bounds checks. A round reads at most 55 bits, hence
// 7 bytes, and writes at most 20.
func (q *quadState) rounds() int { return min(q.pos/7, (len(q.out)-q.at)/20) }

// fourQuads decodes the fronts of four streams. out and r keep the rest of them.
func (h *HuffmanTable) fourQuads(out *[4][]byte, r *[4]backBits) {
	var s [4]quadState
	for i := range s {
		if len(r[i].src) < 16 {
			return
		}
		s[i] = quadState{src: r[i].src, pos: len(r[i].src) - 8, bits: 1 << (8*len(r[i].src) - r[i].left), out: out[i]}
	}
	h.buildQuads()
	for {
		// The slot of a stream that is done goes to one that is not, so that the loop always has four
		// states; two slots of one stream do the same work twice.
		var busy [4]*quadState
		n, rounds := 0, 0
		for i := range s {
			if k := s[i].rounds(); k > 0 {
				if rounds == 0 || k < rounds {
					rounds = k
				}
				busy[n] = &s[i]
				n++
			}
		}
		if n == 0 {
			break
		}
		for i := n; i < 4; i++ {
			busy[i] = busy[i-n]
		}
		h.quadRounds(&busy, rounds)
	}
	for i := range s {
		r[i].left = 8*s[i].pos + 64 - bits.TrailingZeros64(s[i].bits)
		out[i] = out[i][s[i].at:]
	}
}

// quadRoundsGo makes rounds of five lookups in each of four streams. Some streams may be the same.
func (h *HuffmanTable) quadRoundsGo(s *[4]*quadState, rounds int) {
	for i, q := range s {
		if i > 0 && q == s[0] || i > 1 && q == s[1] {
			continue
		}
		b, pos, offset := q.bits, q.pos, q.at
		for range rounds {
			u := bits.TrailingZeros64(b)
			pos -= u >> 3
			b = (binary.LittleEndian.Uint64(q.src[pos:]) | 1) << (u & 7)
			for range 5 {
				e := h.quads[b>>(64-quadBits)]
				b <<= e & 63
				binary.LittleEndian.PutUint32(q.out[offset:], uint32(e>>32))
				offset += int(e >> 8 & 0xff)
			}
		}
		q.bits, q.pos, q.at = b, pos, offset
	}
}
