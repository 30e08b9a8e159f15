//go:build amd64 && !purego && !twins

package kernel

import (
	"math/bits"

	"golang.org/x/sys/cpu"
)

// hasLoops says whether the loops in loops_amd64.s can run here.
var hasLoops = cpu.X86.HasBMI1 && cpu.X86.HasBMI2

// huffmanState is the state of the loop of four5: four streams and where their symbols go.
type huffmanState struct {
	dst     *byte
	quarter int       // bytes from the symbols of one stream to the symbols of the next
	src     [4]*byte  // the streams
	pos     [4]int    // where in its stream each word was read
	bits    [4]uint64 // as in four5Go
	rounds  int       // how often to decode five symbols of each stream, at least 1
}

// huffmanFour5 runs s.rounds rounds of four5Go. Every pos is at least 7 a round, and 5 bytes a
// round can be written for each stream.
//
//go:noescape
func huffmanFour5(t *uint16, s *huffmanState)

// fseFour is the loop of decode4Go: it decodes four symbols at a time until fewer than 8 bytes
// stand before the word it reads at pos, or n symbols are done, n >= 4. over is the number of bits
// of that word, 0 to 7, that were used. It returns the symbols done, pos and over. Every state is
// an index of t.
//
//go:noescape
func fseFour(t *fseState, dst *byte, n int, src *byte, pos, over int, s *[4]uint64) (done, newPos, newOver int)

// fieldSequences is sequencesGo with the addresses and limits of f. No limit is negative.
//
//go:noescape
func fieldSequences(f *fieldState)

// sequences is sequencesGo, faster.
func (f *fieldState) sequences(dst []byte, s *FieldSequences) {
	if !hasLoops || f.token >= f.tokenEnd {
		f.sequencesGo(dst, s)
		return
	}
	first := func(b []byte) *byte {
		if len(b) == 0 {
			return &dst[0] // never read
		}
		return &b[0]
	}
	f.dst, f.lits, f.tokens = &dst[0], &s.Literals[0], &s.Tokens[0]
	f.offsets, f.moreLit, f.moreMatch = first(s.Offsets), first(s.MoreLiterals), first(s.MoreMatch)
	fieldSequences(f)
}

// quantizePairs is the loop of pairsGo from bit pos on, for n >= 2 codes; limit is the last byte of
// extra that a word may begin at.
//
//go:noescape
func quantizePairs(q *Quantizer, dst, codes *byte, n int, extra *byte, limit, pos int) (done, newPos int)

// pairs is pairsGo, faster.
func (q *Quantizer) pairs(dst, codes, extra []byte) (done, pos int) {
	if !hasLoops || len(codes) < 2 || len(extra) < 8 {
		return q.pairsGo(dst, codes, extra)
	}
	return quantizePairs(q, &dst[0], &codes[0], len(codes), &extra[0], len(extra)-8, 0)
}

// fseStates is statesGo for n states, n >= 1.
//
//go:noescape
func fseStates(t *fseState, symbols *uint8, n int, next *[256]uint32, log int)

// states is statesGo, faster. A processor with BMI2 has LZCNT.
func (f *FSETable) states(symbols []uint8, next *[256]uint32) {
	if !hasLoops || len(symbols) == 0 {
		f.statesGo(symbols, next)
		return
	}
	fseStates(&f.t[0], &symbols[0], len(symbols), next, f.log)
}

// shiftAhead is putAheadGo for n entries, a multiple of 4 and at least that.
//
//go:noescape
func shiftAhead(dst, src *uint64, n int, add uint64)

// shiftLooks is putLooksGo for n entries, a multiple of 2 and at least that.
//
//go:noescape
func shiftLooks(dst, src *uint64, n int, add uint64)

// putAhead is putAheadGo, faster.
func putAhead(to, from []uint64, add uint64) {
	count := len(from) &^ 3
	if count == 0 || !hasLoops {
		putAheadGo(to, from, add)
		return
	}
	to = to[:len(from)]
	shiftAhead(&to[0], &from[0], count, add)
	putAheadGo(to[count:], from[count:], add)
}

// putLooks is putLooksGo, faster.
func putLooks(to, from []uint64, add uint64) {
	count := len(from) &^ 1
	if count == 0 || !hasLoops {
		putLooksGo(to, from, add)
		return
	}
	to = to[:len(from)]
	shiftLooks(&to[0], &from[0], count, add)
	putLooksGo(to[count:], from[count:], add)
}

// quadStreams is the state of the loop of quadRounds.
type quadStreams struct {
	dst    [4]*byte
	src    [4]*byte // the streams
	pos    [4]int   // where in its stream each word was read
	bits   [4]uint64
	at     [4]int // where its next symbol goes, from dst on
	rounds int    // at least 1
}

// huffmanQuads does s.rounds rounds of quadRoundsGo.
//
//go:noescape
func huffmanQuads(t *quadTable, s *quadStreams)

// quadRounds is quadRoundsGo, faster.
func (h *HuffmanTable) quadRounds(streams *[4]*quadState, rounds int) {
	if !hasLoops {
		h.quadRoundsGo(streams, rounds)
		return
	}
	state := quadStreams{rounds: rounds}
	for i, stream := range streams {
		state.dst[i], state.src[i] = &stream.out[0], &stream.src[0]
		state.pos[i], state.bits[i], state.at[i] = stream.pos, stream.bits, stream.at
	}
	huffmanQuads(&h.quads, &state)
	for i, stream := range streams {
		stream.pos, stream.bits, stream.at = state.pos[i], state.bits[i], state.at[i]
	}
}

// four5 is four5Go or does the same faster.
func (h *HuffmanTable) four5(out *[4][]byte, readers *[4]backBits) int {
	count := len(out[3])
	for i := range readers {
		if !hasLoops || len(readers[i].src) < 16 || count < 64 {
			return h.four5Go(out, readers)
		}
	}
	state := huffmanState{quarter: len(out[0])}
	for i := range readers {
		state.src[i] = &readers[i].src[0]
		state.pos[i] = len(readers[i].src) - 8
		state.bits[i] = 1 << (8*len(readers[i].src) - readers[i].bits)
	}
	done := 0
	for {
		state.rounds = min((count-done)/5, state.pos[0]/7, state.pos[1]/7, state.pos[2]/7, state.pos[3]/7)
		if state.rounds < 1 {
			break
		}
		state.dst = &out[0][done]
		huffmanFour5(&h.t[0], &state)
		done += 5 * state.rounds
	}
	for i := range readers {
		readers[i].bits = 8*state.pos[i] + 64 - bits.TrailingZeros64(state.bits[i])
	}
	return done
}

// decode4 is decode4Go or does the same faster.
func (f *FSETable) decode4(dst []byte, r *backBits, s *[4]uint64) int {
	if !hasLoops || r.bits < 128 || len(dst) < 64 {
		return f.decode4Go(dst, r, s)
	}
	for i := range s {
		s[i] &= 1<<MaxFSELog - 1
	}
	end := (r.bits + 7) >> 3
	done, pos, excess := fseFour(&f.t[0], &dst[0], len(dst), &r.src[0], end-8, 8*end-r.bits, s)
	r.bits = 8*pos + 64 - excess
	return done + f.decode4Go(dst[done:], r, s)
}
