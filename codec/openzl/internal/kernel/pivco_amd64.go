//go:build amd64 && !purego && !twins

package kernel

import (
	"golang.org/x/sys/cpu"
)

// hasExpand says whether the loops in pivco_amd64.s can run here. They spread bytes by a mask (VPEXPANDB).
var hasExpand = cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VBMI && cpu.X86.HasAVX512VBMI2 &&
	cpu.X86.HasPOPCNT

// pivcoWords is the input of a loop over the bits of a node: whole words of 64 bits, then the bits of last
// that are set in keep.
type pivcoWords struct {
	out        *byte
	bits       *byte
	words      int
	last, keep uint64
}

// wordsOf cuts n bits of m, which has the bytes for them, into words.
func wordsOf(out, m []byte) pivcoWords {
	n := len(out)
	w := pivcoWords{out: &out[0], bits: &m[0], words: n / 64, keep: 1<<(n%64) - 1}
	w.last = word(m[n/64*8:]) & w.keep
	return w
}

// pivcoMergeWords is pivcoMergeGo. It reads up to 64 bytes after those of zeros and ones.
//
//go:noescape
func pivcoMergeWords(w *pivcoWords, zeros, ones *byte)

// pivcoFillWords is pivcoFillGo. It reads up to 64 bytes after those of in.
//
//go:noescape
func pivcoFillWords(w *pivcoWords, in *byte, v byte, invert uint64)

// pivcoMerge is pivcoMergeGo, faster. The memory of zeros and ones goes on for pivcoSlack bytes after them.
func pivcoMerge(out, zeros, ones, m []byte) {
	if !hasExpand {
		pivcoMergeGo(out, zeros, ones, m)
		return
	}
	w := wordsOf(out, m)
	pivcoMergeWords(&w, &zeros[0], &ones[0])
}

// pivcoFill is pivcoFillGo, faster. The memory of in goes on for pivcoSlack bytes after it.
func pivcoFill(out, in, m []byte, v byte, invert uint64) {
	if !hasExpand {
		pivcoFillGo(out, in, m, v, invert)
		return
	}
	w := wordsOf(out, m)
	pivcoFillWords(&w, &in[0], v, invert)
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
// of a group, which load masks, and tail masks those of the rest.
//
//go:noescape
func pivcoFlatWords(w *pivcoWords, c *flatControl, symbols *[128]byte, step int, load, tail uint64)

// pivcoFlat is pivcoFlatGo, faster.
func pivcoFlat(out, m []byte, depth int, symbols []byte) {
	// All 256 symbols of one length need no table: they are in order.
	if depth == 8 {
		copy(out, m)
		return
	}
	if !hasExpand {
		pivcoFlatGo(out, m, depth, symbols)
		return
	}
	var table [128]byte
	copy(table[:], symbols[:1<<depth])
	n := len(out)
	w := pivcoWords{out: &out[0], bits: &m[0], words: n / 64, keep: 1<<(n%64) - 1}
	tail := uint64(1)<<((n%64*depth+7)/8) - 1
	pivcoFlatWords(&w, &flatControls[depth], &table, 8*depth, 1<<(8*depth)-1, tail)
}
