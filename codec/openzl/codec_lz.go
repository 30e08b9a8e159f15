package openzl

import (
	"math"

	"github.com/chaski-eo/chaski/codec/openzl/internal/kernel"
	"github.com/pierrec/lz4/v4"
)

// decodeLZ undoes LZ77 on bytes: literals, and for every sequence an offset, a number of literals
// and one of matched bytes. The header is the size of the result.
func decodeLZ(c *call) error {
	literals, offsets, lits, matches := c.in[0], c.in[1], c.in[2], c.in[3]
	h := cursor{b: c.header}
	n := h.varint()
	if h.bad || h.left() > 0 || n > math.MaxInt32 {
		return c.fault("header % x is not a size", c.header)
	}
	if lits.count != offsets.count || matches.count != offsets.count {
		return c.fault("%d offsets, %d and %d lengths", offsets.count, lits.count, matches.count)
	}
	dst, err := c.make(0, 1, int(n))
	if err != nil {
		return err
	}
	if !kernel.LZ(dst, literals.data, offsets.data, lits.data, matches.data, offsets.width, lits.width, matches.width) {
		return c.fault("sequences do not make %d bytes", n)
	}
	return nil
}

// decodeMuxLengths takes the two lengths of a sequence out of one byte: the lower bits are the
// number of literals, the upper ones that of matched bytes less a bias. The highest number says
// that a long one is to be added. The header is where the bits are split and the bias.
func decodeMuxLengths(c *call) error {
	muxed, long := c.in[0], c.in[1]
	if len(c.header) != 1 || c.header[0]&15 > 8 {
		return c.fault("header % x", c.header)
	}
	lits, err := c.make(0, long.width, muxed.count)
	if err != nil {
		return err
	}
	matches, err := c.make(1, long.width, muxed.count)
	if err != nil {
		return err
	}
	if !kernel.MuxLengths(lits, matches, muxed.data, long.data, long.width, uint(c.header[0]&15), uint64(c.header[0]>>4)) {
		return c.fault("%d long lengths are not what is needed", long.count)
	}
	return nil
}

// decodeLZ4 decompresses an LZ4 block. The header is the size of its content.
func decodeLZ4(c *call) error {
	src := c.in[0].data
	h := cursor{b: c.header}
	n := h.varint()
	// A byte of a block gives at most 255.
	if h.bad || n > math.MaxInt32 || n > 255*uint64(len(src)) {
		return c.fault("%d bytes in a block of %d", n, len(src))
	}
	dst, err := c.make(0, 1, int(n))
	if err != nil {
		return err
	}
	if n == 0 {
		if len(src) != 1 || src[0] != 0 {
			return c.fault("block of %d bytes without content", len(src))
		}
		return nil
	}
	got, err := lz4.UncompressBlock(src, dst)
	if err != nil || got != len(dst) {
		return c.fault("block does not give %d bytes", n)
	}
	return nil
}
