package whole

import (
	"math/bits"
	"sync"

	"github.com/chaski-eo/chaski/internal/fse"
)

// The tables of a block, in the order in which a block has them, and the table of the weights of Huffman codes.
const (
	literalLengths = iota
	offsets
	matchLengths
	codeWeights
)

// tableMax is the most states that a table has: 2^9 (RFC 8878, 3.1.1.3.2.1.1).
const tableMax = 1 << 9

// tables holds a table for each part of a sequence.
type tables struct {
	entries [3][tableMax]fseEntry
	log     [3]int
}

// fseEntry is a state of a table of finite state entropy, in one word:
//
//	bits 0–7    n, the bits that the next state takes from the stream
//	bits 8–15   -(n+x) modulo 256, so that the sum of three entries has the bits of a sequence, negated
//	bits 16–31  the next state if those n bits are zero
//	bits 32–39  x, the bits that the value takes from the stream
//	bits 40–63  the value if those x bits are zero; 0 for offsets, whose value is 1<<x
//
// The loop in assembly takes three of these fields by instructions that look at the lowest byte of a register only.
type fseEntry uint64

// with returns the entry of a state whose code e is for: e has nothing but x and the value.
func (e fseEntry) with(n uint32, next uint16) fseEntry {
	return e | fseEntry(n) | -(fseEntry(n)+e>>32)&0xff<<8 | fseEntry(next)<<16
}

func (v codeValue) entry() fseEntry { return fseEntry(v.bits)<<32 | fseEntry(v.base)<<40 }

// codeValue is the meaning of a code: a base, and the number of bits to add.
type codeValue struct {
	base uint32
	bits uint8
}

// Codes of lengths have a value of their own each up to ownLits and ownMatches, then come values with the bits that the
// lists have (RFC 8878, 3.1.1.3.2.1.1). Matches are of 3 bytes at least. An offset of code x takes x bits; 30 are the
// most, because klauspost/compress refuses more.
var (
	moreLits    = []uint8{1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	moreMatches = []uint8{1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
)

const (
	ownLits    = 16
	ownMatches = 32
	offsetMax  = 30
	matchMin   = 3
)

// values are the values of the codes of each table.
var values = [4][]codeValue{
	literalLengths: lengths(0, ownLits, moreLits),
	offsets:        offsetValues(),
	matchLengths:   lengths(matchMin, ownMatches, moreMatches),
	codeWeights:    lengths(0, codeBits+1, nil),
}

func lengths(first uint32, own int, more []uint8) []codeValue {
	var out []codeValue
	for range own {
		out = append(out, codeValue{base: first})
		first++
	}
	for _, extra := range more {
		out = append(out, codeValue{base: first, bits: extra})
		first += 1 << extra
	}
	return out
}

func offsetValues() []codeValue {
	out := make([]codeValue, offsetMax+1)
	for extra := range out {
		out[extra].bits = uint8(extra)
	}
	return out
}

// fixedFields has the fields of the codes of each table that are the same in all tables.
var fixedFields = func() (all [4][64]fseEntry) {
	for k, list := range values {
		for c, v := range list {
			all[k][c] = v.entry()
		}
	}
	return all
}()

// logMax has the logarithms of the largest tables.
var logMax = [4]int{literalLengths: 9, offsets: 8, matchLengths: 9, codeWeights: weightLog}

// predefined returns the tables of blocks that say nothing of their own (RFC 8878, 3.1.1.3.2.2).
var predefined = sync.OnceValue(func() *tables {
	counts := [3][]int16{
		literalLengths: {4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1,
			-1, -1, -1, -1},
		offsets: {1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1},
		matchLengths: {1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
			1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1},
	}
	t := new(tables)
	for k, c := range counts {
		t.log[k], _ = build(t.entries[k][:], k, c)
	}
	return t
})

// readTables reads the tables of a block that ends at end, and skips them.
func (d *Decoder) readTables(end int) bool {
	f := &d.frame
	if f.at >= end {
		return false
	}
	modes := f.src[f.at]
	f.at++
	if modes&3 != 0 {
		return false
	}
	for k := range 3 {
		ok := true
		switch modes >> (6 - 2*k) & 3 {
		case 0:
			p := predefined()
			d.tables.log[k] = p.log[k]
			copy(d.tables.entries[k][:], p.entries[k][:1<<p.log[k]])
		case 1:
			ok = f.at < end && d.tables.one(k, f.src[f.at])
			f.at++
		case 2:
			ok = d.readCounts(k, end)
		default:
			ok = f.hasTable[k]
		}
		if !ok {
			return false
		}
		f.hasTable[k] = true
	}
	return true
}

// one makes a table of one state.
func (t *tables) one(k int, code byte) bool {
	if int(code) >= len(values[k]) {
		return false
	}
	t.log[k] = 0
	t.entries[k][0] = values[k][code].entry().with(0, 0)
	return true
}

// readCounts builds a table from the counts of its codes.
func (d *Decoder) readCounts(k, end int) bool {
	var counts [256]int16
	symbols, size, ok := fse.Counts(counts[:], d.frame.src[d.frame.at:end])
	d.frame.at += size
	if ok {
		d.tables.log[k], ok = build(d.tables.entries[k][:], k, counts[:symbols])
	}
	return ok
}

// build builds the states of table k from the counts of its codes, two at least, -1 meaning "less than one", whose sum
// is a power of two (RFC 8878, 4.1.1).
func build(states []fseEntry, k int, counts []int16) (log int, ok bool) {
	sum := 0
	for _, count := range counts {
		sum += max(int(count), -int(count))
	}
	log = bits.Len(uint(sum)) - 1
	if log > logMax[k] || len(counts) < 2 || len(counts) > len(values[k]) {
		return 0, false
	}
	var codes [tableMax]uint8
	var all [64]codeStates
	high := sum - 1 // codes of probability below one go from here downwards
	fixed, long := &fixedFields[k], log+1
	for code, count := range counts {
		if count == -1 {
			codes[high&(tableMax-1)] = uint8(code)
			high--
			count = 1
		}
		width := bits.Len16(uint16(count))
		maxBits := uint32(long - width)
		shared := &all[code&63]
		shared.next, shared.limit, shared.shift = uint32(count), 1<<width, 16+maxBits
		shared.entries = [2]fseEntry{fixed[code&63].with(maxBits, 0), fixed[code&63].with(maxBits-1, 0)}
		for i := range shared.entries {
			shared.entries[i] -= fseEntry(sum) << 16
		}
	}
	spread(&codes, counts, sum, high)
	states = states[:sum]
	for i, code := range codes[:sum] {
		shared := &all[code&63]
		x := shared.next
		shared.next++
		fewer := (shared.limit - 1 - x) >> 31
		states[i] = shared.entries[fewer&1] + fseEntry(x)<<((shared.shift-fewer)&63)
	}
	return log, true
}

// codeStates is what the states of a code have in common. In the order of the table, their numbers x count up from the
// count n of the code to 2n-1, and the next state is x, shifted by its bits to be the sum of counts at least, less that
// sum.
type codeStates struct {
	next    uint32      // x
	limit   uint32      // from here on, x takes a bit less
	shift   uint32      // of x in an entry, up to the limit
	entries [2]fseEntry // without x, up to the limit and from it on
}

// spread gives each code as many of the sum states as it counts, of those up to high.
func spread(codes *[tableMax]uint8, counts []int16, sum, high int) {
	step, pos, mask := sum>>1+sum>>3+3, 0, (sum-1)&(tableMax-1)
	for code, count := range counts {
		// No state is taken, so the test for it can be left out.
		if high == sum-1 {
			for range int(count) {
				codes[pos&mask] = uint8(code)
				pos += step
			}
			continue
		}
		for range int(count) {
			codes[pos&mask] = uint8(code)
			for pos = (pos + step) & mask; pos > high; {
				pos = (pos + step) & mask
			}
		}
	}
}
