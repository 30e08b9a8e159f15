package kernel

import (
	"encoding/binary"
	"math/bits"
)

// Streams whose symbols take few bits are decoded up to four symbols at a time.
const (
	quadBits = 11 // that one look takes, at most
	// Streams that take so many tenths of a bit a symbol, or more, are better decoded one by one.
	quadDensity = 55
)

// quadLeast is the number of symbols from which on the table is worth its making. Tests change it.
var quadLeast = 8 << 10

// quadTable is indexed by the next 11 bits. An entry holds how many of them its symbols take (8
// bits), how many symbols those are (8 bits), 1 to 4, and from bit 32 on the symbols.
type quadTable [1 << quadBits]uint64

// buildQuads makes the table of h.quads. The longest code has at most quadBits bits.
//
// It does so from smaller ones: a table of b bits says which symbols stand in b bits, and is, where
// the first symbol takes l bits, that of b-l bits with the symbol put in front. While they are made
// entries hold in their upper half the symbols, and in the bytes of the lower half how many symbols
// end there (4 bits) and after how many bits (4 bits), for the first symbol, the first two, three
// and four, or as many as there are.
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
		at := len(table)
		for k := n - 1; k >= 0 && int(lengths[k]) <= b; k-- {
			run := 1 << (b - int(lengths[k]))
			at -= run
			putAhead(table[at:at+run], h.windows[run:2*run], order[k])
		}
		clear(table[:at])
	}
	at := len(h.quads)
	for k := n - 1; k >= 0; k-- {
		run := 1 << (quadBits - int(lengths[k]))
		at -= run
		putLooks(h.quads[at:at+run], h.windows[run:2*run], order[k])
	}
}

// ahead masks what stays of an entry as another symbol comes first.
const ahead = 0xffffff00_ffffff00

// putAheadGo puts the symbol of add in front of the entries of from. The slices have one length.
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

// worthQuads says whether streams of size bytes hold enough symbols of few bits.
func (h *HuffmanTable) worthQuads(symbols, size int) bool {
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

// rounds returns how often five looks can be taken without asking: each round takes at most 7
// bytes, and writes at most 20.
func (q *quadState) rounds() int { return min(q.pos/7, (len(q.out)-q.at)/20) }

// fourQuads decodes the fronts of four streams, and leaves in out and r what is left of them.
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
		// A place of a stream that is done is taken by one that is not: both do the same.
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

// quadRoundsGo does rounds of five looks at each of four streams, of which some may be the same.
func (h *HuffmanTable) quadRoundsGo(s *[4]*quadState, rounds int) {
	for i, q := range s {
		if i > 0 && q == s[0] || i > 1 && q == s[1] {
			continue
		}
		b, pos, at := q.bits, q.pos, q.at
		for range rounds {
			u := bits.TrailingZeros64(b)
			pos -= u >> 3
			b = (binary.LittleEndian.Uint64(q.src[pos:]) | 1) << (u & 7)
			for range 5 {
				e := h.quads[b>>(64-quadBits)]
				b <<= e & 63
				binary.LittleEndian.PutUint32(q.out[at:], uint32(e>>32))
				at += int(e >> 8 & 0xff)
			}
		}
		q.bits, q.pos, q.at = b, pos, at
	}
}
