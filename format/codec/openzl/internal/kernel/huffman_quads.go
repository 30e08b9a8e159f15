package kernel

import (
	"encoding/binary"
	"math/bits"
)

// Streams whose symbols take few bits are decoded up to four symbols at a time.
const (
	// quadBits is the number of bits that index the table: the longest code that the encoder writes.
	// The table then has 2048 entries of 8 bytes, so it fits in half of a first-level cache.
	quadBits = 11
	// quadDensity is the limit in tenths of a bit per symbol. Denser streams have fewer than two
	// symbols in 11 bits, so decoding one by one is faster.
	quadDensity = 55
)

// quadLeast is the number of symbols from which the table is worth building. Tests change it.
var quadLeast = 8 << 10

// quadTable is indexed by the next 11 bits. An entry holds how many bits its symbols take (8 bits), the number
// of symbols, 1 to 4 (8 bits), and from bit 32 on the symbols.
type quadTable [1 << quadBits]uint64

// buildQuads builds the table h.quads. The longest code has at most quadBits bits.
//
// It builds larger tables from smaller ones: the table of width bits lists the symbols in width bits. Where the
// first symbol takes length bits, it is the table of width-length bits with that symbol put before. Meanwhile entries
// hold the symbols in their upper half. Each byte of the lower half holds the number of symbols (4 bits)
// and the bits that they take (4 bits): for the first symbol, the first two, three and four, or as many as
// there are.
func (h *HuffmanTable) buildQuads() {
	var order [256]uint64 // what each symbol adds to an entry, in the order of the codes
	var lengths [256]uint8
	count := 0
	for i := 0; i < len(h.t); count++ {
		entry := uint64(h.t[i])
		length := entry & 15
		order[count&255], lengths[count&255] = entry>>8<<32|(length|0x10)*0x01010101, uint8(length)
		i += 1 << (MaxHuffmanBits - length)
	}
	for width := range quadBits {
		table := h.windows[1<<width : 2<<width]
		pos := len(table)
		for symbol := count - 1; symbol >= 0 && int(lengths[symbol]) <= width; symbol-- {
			run := 1 << (width - int(lengths[symbol]))
			pos -= run
			putAhead(table[pos:pos+run], h.windows[run:2*run], order[symbol])
		}
		clear(table[:pos])
	}
	pos := len(h.quads)
	for symbol := count - 1; symbol >= 0; symbol-- {
		run := 1 << (quadBits - int(lengths[symbol]))
		pos -= run
		putLooks(h.quads[pos:pos+run], h.windows[run:2*run], order[symbol])
	}
}

// ahead masks the part of an entry that remains when another symbol is put before its symbols.
const ahead = 0xffffff00_ffffff00

// putAheadGo puts the symbol of add before the symbols of the entries of from. The slices have equal lengths.
func putAheadGo(to, from []uint64, add uint64) {
	to = to[:len(from)]
	for i, entry := range from {
		to[i] = entry<<8&ahead + add
	}
}

// putLooksGo is putAheadGo for the entries of a quadTable.
func putLooksGo(to, from []uint64, add uint64) {
	to = to[:len(from)]
	for i, entry := range from {
		entry = entry<<8&ahead + add
		to[i] = entry>>32<<32 | entry>>20&0x700 | entry>>24&15
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

// fourQuads decodes the fronts of four streams. out and readers keep the rest of them.
func (h *HuffmanTable) fourQuads(out *[4][]byte, readers *[4]backBits) {
	var streams [4]quadState
	for i := range streams {
		if len(readers[i].src) < 16 {
			return
		}
		src := readers[i].src
		streams[i] = quadState{src: src, pos: len(src) - 8, bits: 1 << (8*len(src) - readers[i].bits), out: out[i]}
	}
	h.buildQuads()
	for {
		// The slot of a stream that is done goes to one that is not, so the loop always has four
		// states; two slots of one stream do the same work twice.
		var busy [4]*quadState
		count, rounds := 0, 0
		for i := range streams {
			if possible := streams[i].rounds(); possible > 0 {
				if rounds == 0 || possible < rounds {
					rounds = possible
				}
				busy[count] = &streams[i]
				count++
			}
		}
		if count == 0 {
			break
		}
		for i := count; i < 4; i++ {
			busy[i] = busy[i-count]
		}
		h.quadRounds(&busy, rounds)
	}
	for i := range streams {
		readers[i].bits = 8*streams[i].pos + 64 - bits.TrailingZeros64(streams[i].bits)
		out[i] = out[i][streams[i].at:]
	}
}

// quadRoundsGo makes rounds of five lookups in each of four streams. Some streams may be the same.
func (h *HuffmanTable) quadRoundsGo(streams *[4]*quadState, rounds int) {
	for i, stream := range streams {
		if i > 0 && stream == streams[0] || i > 1 && stream == streams[1] {
			continue
		}
		word, pos, offset := stream.bits, stream.pos, stream.at
		for range rounds {
			used := bits.TrailingZeros64(word)
			pos -= used >> 3
			word = (binary.LittleEndian.Uint64(stream.src[pos:]) | 1) << (used & 7)
			for range 5 {
				entry := h.quads[word>>(64-quadBits)]
				word <<= entry & 63
				binary.LittleEndian.PutUint32(stream.out[offset:], uint32(entry>>32))
				offset += int(entry >> 8 & 0xff)
			}
		}
		stream.bits, stream.pos, stream.at = word, pos, offset
	}
}
