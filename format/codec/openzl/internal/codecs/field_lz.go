package codecs

import (
	"math"
	"math/bits"

	"github.com/chaski-eo/chaski/format/codec/openzl/internal/kernel"
)

// decodeFieldLZ undoes LZ77 on elements whose size is a power of two. Its inputs are literals, one 16-bit
// token per sequence, offsets, and the lengths that do not fit in a token. The header is the largest number
// of elements in the result.
func decodeFieldLZ(c *Call) error {
	literals, tokens, offsets, moreLit, moreMatch := c.In[0], c.In[1], c.In[2], c.In[3], c.In[4]
	count, rest := c.number()
	width := literals.Width
	switch {
	case rest != 0 || count > math.MaxInt32:
		return c.Corrupt("header % x is not a number of elements", c.Header)
	case width&(width-1) != 0 || width > kernel.MaxFieldWidth:
		return c.Corrupt("elements of %d bytes", width)
	case tokens.Width != 2 || offsets.Width != 4 || moreLit.Width != 4 || moreMatch.Width != 4:
		return c.Corrupt("tokens, offsets and lengths of %d, %d, %d and %d bytes",
			tokens.Width, offsets.Width, moreLit.Width, moreMatch.Width)
	}
	dst, err := c.Make(0, width, int(count))
	if err != nil {
		return err
	}
	got, ok := kernel.FieldLZ(dst, uint(bits.TrailingZeros(uint(width))),
		kernel.FieldSequences{Literals: literals.Data, Tokens: tokens.Data, Offsets: offsets.Data,
			MoreLiterals: moreLit.Data, MoreMatch: moreMatch.Data})
	if !ok {
		return c.Corrupt("sequences do not fit together")
	}
	c.trim(0, got/width)
	return nil
}
