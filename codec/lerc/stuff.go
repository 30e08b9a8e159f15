package lerc

import (
	"encoding/binary"
	"math/bits"
)

// stuffed reads up to most numbers, packed in as many bits as the largest needs, into d.block.
func (d *Decoder) stuffed(most int) {
	flags := d.u8()
	bytes, width, tabled := [4]int{4, 2, 1, 0}[flags>>6], flags&31, flags&32 != 0
	n := 0
	for i, b := range d.bytes(bytes) {
		n |= int(b) << (8 * i)
	}
	switch {
	case d.err != nil:
		return
	case n > most || flags>>6 == 3:
		d.fail(corrupt("%d numbers in a block of %d", n, most))
		return
	case !tabled:
		d.block = d.unpack(d.block, n, width)
		return
	}
	// The table leaves out its first entry, 0.
	entries := d.u8() - 1
	if d.err == nil && (entries < 1 || width == 0) {
		d.fail(corrupt("a table of %d numbers of %d bits", entries+1, width))
		return
	}
	d.table = d.unpack(append(d.table[:0], 0), entries, width)
	d.block = d.unpack(d.block, n, bits.Len(uint(entries)))
	if d.err != nil {
		return
	}
	for i, v := range d.block {
		if int(v) >= len(d.table) {
			d.fail(corrupt("entry %d of a table of %d", v, len(d.table)))
			return
		}
		d.block[i] = d.table[v]
	}
}

// unpack appends n numbers of that many bits, at most 31. n is at most a block's.
func (d *Decoder) unpack(to []uint32, n, width int) []uint32 {
	src := d.bytes((n*width + 7) / 8)
	if d.err != nil {
		return to
	}
	if d.h.version < 3 {
		return unpackWords(to, src, n, width)
	}
	var acc uint64
	have := 0
	for range n {
		for ; have < width; have += 8 {
			acc |= uint64(src[0]) << have
			src = src[1:]
		}
		to = append(to, uint32(acc&(1<<width-1)))
		acc >>= width
		have -= width
	}
	return to
}

// unpackWords reads the form of version 2: most significant bits first, in little-endian words of 4 bytes, of
// which the last one lacks its low bytes if they are not needed.
func unpackWords(to []uint32, src []byte, n, width int) []uint32 {
	var acc uint64
	have := 0
	for range n {
		for have < width {
			k := min(4, len(src))
			var w [4]byte
			copy(w[4-k:], src[:k])
			acc = acc<<32 | uint64(binary.LittleEndian.Uint32(w[:]))
			src = src[k:]
			have += 32
		}
		have -= width
		to = append(to, uint32(acc>>have&(1<<width-1)))
	}
	return to
}
