package codecs

import (
	"math"

	"github.com/chaski-eo/chaski/format/codec/openzl/internal/kernel"
	"github.com/chaski-eo/chaski/internal/expand"
)

// decodeLZ undoes LZ77 on bytes. Its inputs are literals and, for every sequence, an offset, the number of
// literals and the number of matched bytes. The header is the size of the result.
func decodeLZ(c *Call) error {
	literals, offsets, literalCounts, matches := c.In[0], c.In[1], c.In[2], c.In[3]
	size, rest := c.number()
	if rest != 0 || size > math.MaxInt32 {
		return c.Corrupt("header % x is not a size", c.Header)
	}
	if literalCounts.Count != offsets.Count || matches.Count != offsets.Count {
		return c.Corrupt("%d offsets, %d and %d lengths", offsets.Count, literalCounts.Count, matches.Count)
	}
	dst, err := c.Make(0, 1, int(size))
	if err != nil {
		return err
	}
	if !kernel.LZ(dst, literals.Data, offsets.Data, literalCounts.Data, matches.Data, offsets.Width,
		literalCounts.Width, matches.Width) {
		return c.Corrupt("sequences do not make %d bytes", size)
	}
	return nil
}

// decodeMuxLengths extracts the two lengths of a sequence from one byte: the lower bits are the number of
// literals, the upper bits the number of matched bytes minus a bias. If either has all bits set, a number
// of the second input is added to it. The header holds the bit at which the byte is split, and the bias.
func decodeMuxLengths(c *Call) error {
	muxed, long := c.In[0], c.In[1]
	if len(c.Header) != 1 || c.Header[0]&15 > 8 {
		return c.Corrupt("header % x", c.Header)
	}
	lits, err := c.Make(0, long.Width, muxed.Count)
	if err != nil {
		return err
	}
	matches, err := c.Make(1, long.Width, muxed.Count)
	if err != nil {
		return err
	}
	if !kernel.MuxLengths(lits, matches, muxed.Data, long.Data, long.Width, uint(c.Header[0]&15),
		uint64(c.Header[0]>>4)) {
		return c.Corrupt("%d long lengths are not what is needed", long.Count)
	}
	return nil
}

// decodeLZ4 decompresses an LZ4 block. The header is the size of its content.
func decodeLZ4(c *Call) error {
	src := c.In[0].Data
	size, rest := c.number()
	// A byte of an LZ4 block produces at most 255 bytes, so size is bounded by the bytes present.
	if rest < 0 || size > math.MaxInt32 || size > 255*uint64(len(src)) {
		return c.Corrupt("%d bytes in a block of %d", size, len(src))
	}
	dst, err := c.Make(0, 1, int(size))
	if err != nil {
		return err
	}
	if err := expand.LZ4(dst, src); err != nil {
		return c.Corrupt("block of %d bytes does not give %d", len(src), size)
	}
	return nil
}
