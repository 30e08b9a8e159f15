package openzl

import (
	"math"
	"math/bits"

	"github.com/chaski-eo/chaski/codec/openzl/internal/kernel"
)

// decodeFieldLZ undoes LZ77 on elements of a power of two bytes: literals, one 16-bit token a
// sequence, offsets, and the lengths that do not fit in a token. The header says how many elements
// come out at most.
func decodeFieldLZ(c *call) error {
	literals, tokens, offsets, moreLit, moreMatch := c.in[0], c.in[1], c.in[2], c.in[3], c.in[4]
	h := cursor{b: c.header}
	n := h.varint()
	width := literals.width
	switch {
	case h.bad || h.left() > 0 || n > math.MaxInt32:
		return c.fault("header % x is not a number of elements", c.header)
	case width&(width-1) != 0 || width > kernel.MaxFieldWidth:
		return c.fault("elements of %d bytes", width)
	case tokens.width != 2 || offsets.width != 4 || moreLit.width != 4 || moreMatch.width != 4:
		return c.fault("tokens, offsets and lengths of %d, %d, %d and %d bytes",
			tokens.width, offsets.width, moreLit.width, moreMatch.width)
	}
	dst, err := c.make(0, width, int(n))
	if err != nil {
		return err
	}
	got, ok := kernel.FieldLZ(dst, uint(bits.TrailingZeros(uint(width))),
		kernel.FieldSequences{Literals: literals.data, Tokens: tokens.data, Offsets: offsets.data,
			MoreLiterals: moreLit.data, MoreMatch: moreMatch.data})
	if !ok {
		return c.fault("sequences do not fit together")
	}
	c.trim(0, got/width)
	return nil
}
