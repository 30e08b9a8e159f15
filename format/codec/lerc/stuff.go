package lerc

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/chaski-eo/chaski/internal/cursor"
)

// stuffed reads up to most numbers, packed in as many bits as the largest needs, into d.block.
func (d *Decoder) stuffed(most int) {
	flags := d.u8()
	bytes, width, tabled := [4]int{4, 2, 1, 0}[flags>>6], flags&31, flags&32 != 0
	count := 0
	for i, value := range d.bytes(bytes) {
		count |= int(value) << (8 * i)
	}
	switch {
	case d.err != nil:
		return
	case count > most || flags>>6 == 3:
		d.fail(corrupt("%d numbers in a block of %d", count, most))
		return
	case !tabled:
		d.block = d.unpack(d.block, count, width)
		return
	}
	// The table leaves out its first entry, 0.
	entries := d.u8() - 1
	if d.err == nil && (entries < 1 || width == 0) {
		d.fail(corrupt("a table of %d numbers of %d bits", entries+1, width))
		return
	}
	d.table = d.unpack(append(d.table[:0], 0), entries, width)
	d.block = d.unpack(d.block, count, bits.Len(uint(entries)))
	if d.err != nil {
		return
	}
	for i, entry := range d.block {
		if int(entry) >= len(d.table) {
			d.fail(corrupt("entry %d of a table of %d", entry, len(d.table)))
			return
		}
		d.block[i] = d.table[entry]
	}
}

// unpack appends n numbers of that many bits, at most 31. n is at most a block's.
func (d *Decoder) unpack(to []uint32, n, width int) []uint32 {
	rest := d.b
	src := d.bytes((n*width + 7) / 8)
	if d.err != nil {
		return to
	}
	if d.h.version < 3 {
		return unpackWords(to, src, n, width)
	}
	start := len(to)
	to = slices.Grow(to, n)[:start+n]
	cursor.Unpack(to[start:], rest, width)
	return to
}

// unpackWords reads the form of version 2: most significant bits first, in little-endian words of 4 bytes.
// The last word lacks its low bytes if they are not needed.
func unpackWords(to []uint32, src []byte, n, width int) []uint32 {
	var acc uint64
	have := 0
	for range n {
		for have < width {
			size := min(4, len(src))
			var word [4]byte
			copy(word[4-size:], src[:size])
			acc = acc<<32 | uint64(binary.LittleEndian.Uint32(word[:]))
			src = src[size:]
			have += 32
		}
		have -= width
		to = append(to, uint32(acc>>have&(1<<width-1)))
	}
	return to
}
