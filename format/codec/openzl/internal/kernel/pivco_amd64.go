//go:build amd64 && !purego && !twins

package kernel

import (
	"encoding/binary"

	"golang.org/x/sys/cpu"
)

// pivcoLoops are the fastest loops that this processor has. Tests set slower ones.
var pivcoLoops = func() PivcoLoops {
	x := &cpu.X86
	switch {
	case !x.HasPOPCNT:
		return PivcoGo
	case x.HasAVX512F && x.HasAVX512BW && x.HasAVX512VBMI && x.HasAVX512VBMI2:
		return PivcoAVX512
	case x.HasAVX2:
		return PivcoAVX2
	}
	return PivcoGo
}()

// pivcoWords is the input of a loop over the bits of a node: whole words of 64 bits, then the bits of last
// that are set in keep.
type pivcoWords struct {
	out        *byte
	bits       *byte
	words      int
	last, keep uint64
}

// wordsOf cuts count bits of bitmap, which has the bytes for them, into words.
func wordsOf(out, bitmap []byte) pivcoWords {
	count := len(out)
	words := pivcoWords{out: &out[0], bits: &bitmap[0], words: count / 64, keep: 1<<(count%64) - 1}
	words.last = Word(bitmap[count/64*8:]) & words.keep
	return words
}

// pivcoMergeWords is pivcoMergeGo. It reads up to 64 bytes beyond zeros and ones.
//
//go:noescape
func pivcoMergeWords(w *pivcoWords, zeros, ones *byte)

// pivcoFillWords is pivcoFillGo. It reads up to 64 bytes beyond in.
//
//go:noescape
func pivcoFillWords(w *pivcoWords, in *byte, v byte, invert uint64)

// spreads has for each 8 bits how VPSHUFB spreads two vectors of 8 bytes, one after the other, over 8 bytes: where a
// bit is 0, the next byte of the first vector goes there, and where it is 1, the next one of the second.
var spreads = func() (s [256]uint64) {
	for m := range s {
		var source [2]int
		for i := range 8 {
			bit := m >> i & 1
			s[m] |= uint64(8*bit+source[bit]) << (8 * i)
			source[bit]++
		}
	}
	return s
}()

// pivcoMergeBytes is pivcoMergeGo for n bytes of m. It returns how many bytes of ones it took, and reads up to 8 bytes
// beyond zeros and ones.
//
//go:noescape
func pivcoMergeBytes(out, zeros, ones, m *byte, n int, table *[256]uint64) int

// pivcoFillBytes is pivcoFillGo for n bytes of m. v is in all bytes. It returns how many bytes of in it took, and reads
// up to 8 bytes after them.
//
//go:noescape
func pivcoFillBytes(out, in, m *byte, n int, table *[256]uint64, v, invert uint64) int

// pivcoMerge is pivcoMergeGo, faster. The memory of zeros and ones goes on for pivcoSlack bytes after them.
func pivcoMerge(out, zeros, ones, bitmap []byte) {
	switch pivcoLoops {
	case PivcoAVX512:
		words := wordsOf(out, bitmap)
		pivcoMergeWords(&words, &zeros[0], &ones[0])
		return
	case PivcoAVX2:
		if groups := len(out) / 8; groups > 0 {
			taken := pivcoMergeBytes(&out[0], &zeros[0], &ones[0], &bitmap[0], groups, &spreads)
			out, zeros, ones, bitmap = out[8*groups:], zeros[8*groups-taken:], ones[taken:], bitmap[groups:]
		}
	}
	pivcoMergeGo(out, zeros, ones, bitmap)
}

// pivcoFill is pivcoFillGo, faster. The memory of in goes on for pivcoSlack bytes after it.
func pivcoFill(out, in, bitmap []byte, symbol byte, invert uint64) {
	switch pivcoLoops {
	case PivcoAVX512:
		words := wordsOf(out, bitmap)
		pivcoFillWords(&words, &in[0], symbol, invert)
		return
	case PivcoAVX2:
		if groups := len(out) / 8; groups > 0 {
			symbols := uint64(symbol) * 0x0101_0101_0101_0101
			taken := pivcoFillBytes(&out[0], &in[0], &bitmap[0], groups, &spreads, symbols, invert)
			out, in, bitmap = out[8*groups:], in[taken:], bitmap[groups:]
		}
	}
	pivcoFillGo(out, in, bitmap, symbol, invert)
}

// flatControl is what cuts 64 numbers of one depth from their bits: eight numbers fill depth bytes, which go
// to one lane of 8 bytes, and of those every number its 8 bits.
type flatControl struct {
	lanes  [64]byte // where each byte of the lanes comes from
	shifts [64]byte // at which bit of its lane each number begins
	mask   uint64   // the bits of a number, in each byte
}

var flatControls = func() (c [8]flatControl) {
	for d := range c {
		for i := range 64 {
			c[d].lanes[i] = byte(i/8*d + i%8)
			c[d].shifts[i] = byte(i % 8 * d)
		}
		c[d].mask = (1<<d - 1) * 0x0101_0101_0101_0101
	}
	return c
}()

// pivcoFlatWords looks up groups of 64 numbers, then those that w.keep has, in 128 symbols. step is the bytes
// of a group, which load masks; tail masks the bytes of the rest.
//
//go:noescape
func pivcoFlatWords(w *pivcoWords, c *flatControl, symbols *[128]byte, step int, load, tail uint64)

// flatShuffle is what cuts 8 numbers of one depth, at most 7, from their bits. Each goes to a lane of 16 bits.
type flatShuffle struct {
	bytes [16]byte // the two bytes that hold each number
	times [16]byte // what moves each number to the upper end of its lane, 8 factors of 16 bits
}

var flatShuffles = func() (c [8]flatShuffle) {
	for d := 1; d < len(c); d++ {
		for i := range 8 {
			bit := i * d
			c[d].bytes[2*i], c[d].bytes[2*i+1] = byte(bit/8), byte(bit/8+1)
			binary.LittleEndian.PutUint16(c[d].times[2*i:], 1<<(16-d-bit%8))
		}
	}
	return c
}()

// pivcoFlatGroups looks up groups of 32 numbers of depth bits, n >= 1. It reads 8 bytes where the last 8 numbers begin.
// Each vector of 16 bytes in tables is xor-ed with the one before it. It uses the vectors of 1<<depth symbols.
//
//go:noescape
func pivcoFlatGroups(out, m *byte, n, depth int, c *flatShuffle, tables *[128]byte)

// pivcoFlatAVX2 is pivcoFlatGo for depths up to 7.
func pivcoFlatAVX2(out, bitmap []byte, depth int, symbols []byte) {
	var tables [128]byte
	copy(tables[:], symbols[:1<<depth])
	for i := 1<<depth - 1; i >= 16; i-- {
		tables[i] ^= tables[i-16]
	}
	// The last 8 numbers of group groups-1 begin at byte 4*groups*depth - depth, and 8 bytes have to be there.
	if groups := min(len(out)/32, (len(bitmap)-8+depth)/(4*depth)); groups > 0 {
		pivcoFlatGroups(&out[0], &bitmap[0], groups, depth, &flatShuffles[depth], &tables)
		out, bitmap = out[32*groups:], bitmap[4*depth*groups:]
	}
	if len(out) == 0 {
		return
	}
	// Fewer than 32 numbers are left, or fewer than 4*depth+8 bytes, which hold at most 32 + 64/depth <= 96 numbers.
	var in [4*7 + 8 + 8]byte
	var last [96]byte
	copy(in[:], bitmap)
	pivcoFlatGroups(&last[0], &in[0], (len(out)+31)/32, depth, &flatShuffles[depth], &tables)
	copy(out, last[:])
}

// pivcoFlat is pivcoFlatGo, faster.
func pivcoFlat(out, bitmap []byte, depth int, symbols []byte) {
	// All 256 symbols of one length need no table: they are in order.
	if depth == 8 {
		copy(out, bitmap)
		return
	}
	switch pivcoLoops {
	case PivcoGo:
		pivcoFlatGo(out, bitmap, depth, symbols)
		return
	case PivcoAVX2:
		pivcoFlatAVX2(out, bitmap, depth, symbols)
		return
	}
	var table [128]byte
	copy(table[:], symbols[:1<<depth])
	count := len(out)
	words := pivcoWords{out: &out[0], bits: &bitmap[0], words: count / 64, keep: 1<<(count%64) - 1}
	tail := uint64(1)<<((count%64*depth+7)/8) - 1
	pivcoFlatWords(&words, &flatControls[depth], &table, 8*depth, 1<<(8*depth)-1, tail)
}
