package codecs

import (
	"encoding/binary"

	"github.com/chaski-eo/chaski/format/codec/openzl/internal/kernel"
	"github.com/chaski-eo/chaski/internal/cast"
	numbers "github.com/chaski-eo/chaski/internal/kernel"
)

// maxPivcoSymbols keeps a number of symbols within an int. pivcoCode bounds it further, by the bytes present.
const maxPivcoSymbols = 1 << 40

// decodePivco decodes byte symbols. The first input holds the weights of the symbols. The header is their number
// and, if there are several blocks, the size of a block; later versions may append more.
func decodePivco(c *Call) error {
	weights, src := c.In[0], c.In[1].Data
	symbols, size := binary.Uvarint(c.Header)
	if size <= 0 || symbols > maxPivcoSymbols {
		return c.Corrupt("header of %d bytes, %d symbols", len(c.Header), symbols)
	}
	block := symbols
	if rest := c.Header[size:]; len(rest) > 0 {
		if block, size = binary.Uvarint(rest); size <= 0 {
			return c.Corrupt("header of %d bytes", len(c.Header))
		}
	}
	if weights.Width != 1 || (symbols == 0) != (weights.Count == 0) {
		return c.Corrupt("%d weights of %d bytes for %d symbols", weights.Count, weights.Width, symbols)
	}
	if symbols == 0 {
		if len(src) > 0 {
			return c.Corrupt("%d bytes for no symbols", len(src))
		}
		_, err := c.Make(0, 1, 0)
		return err
	}
	if block == 0 || block > kernel.MaxPivcoBlock {
		return c.Corrupt("blocks of %d bytes", block)
	}
	if err := c.pivcoCode(weights.Data, src, int(symbols)); err != nil {
		return err
	}
	dst, err := c.Make(0, 1, int(symbols))
	if err != nil {
		return err
	}
	return c.pivcoDecode(dst, src, int(block))
}

// pivcoCode builds the code of n symbols in src.
func (c *Call) pivcoCode(weights, src []byte, n int) error {
	if c.w.pivco == nil {
		c.w.pivco = new(kernel.Pivco)
	}
	if !c.w.pivco.Build(weights) {
		return c.Corrupt("%d weights are not a code", len(weights))
	}
	// A symbol takes at least one bit, so the bytes present bound n. If all symbols are the same they take no
	// bits, and the memory that the frame may take bounds n.
	if _, constant := c.w.pivco.Constant(); !constant && n > 8*len(src) {
		return c.Corrupt("%d symbols in %d bytes", n, len(src))
	}
	return nil
}

// pivcoDecode fills dst from src by the code that was built last.
func (c *Call) pivcoDecode(dst, src []byte, block int) error {
	p := c.w.pivco
	if v, constant := p.Constant(); constant {
		if len(src) > 0 {
			return c.Corrupt("%d bytes, but symbols that are all the same take none", len(src))
		}
		numbers.Fill(dst, []byte{v})
		return nil
	}
	size := p.Scratch(len(dst), block)
	if size > cap(c.w.merge) {
		if err := c.w.Memory.Reserve(size); err != nil {
			return err
		}
		c.w.merge = cast.Aligned(size)
	}
	if !p.Decode(dst, src, block, c.w.merge[:size]) {
		return c.Corrupt("nodes do not hold exactly %d symbols", len(dst))
	}
	return nil
}

// Pivco fills dst from src, blocks of PivCo Huffman by the code of weights. dst is not empty.
func (c *Call) Pivco(dst, weights, src []byte, block int) error {
	if err := c.pivcoCode(weights, src, len(dst)); err != nil {
		return err
	}
	return c.pivcoDecode(dst, src, block)
}
