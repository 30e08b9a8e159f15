package openzl

import "github.com/chaski-eo/chaski/codec/openzl/internal/kernel"

// decodeDivideBy multiplies numbers by a divisor they have in common. The header is the divisor.
func decodeDivideBy(c *call) error {
	in := c.in[0]
	h := cursor{b: c.header}
	by := h.varint()
	highest := ^uint64(0) >> (64 - 8*in.width)
	if h.bad || by == 0 || by > highest {
		return c.fault("divisor %d of numbers of %d bytes", by, in.width)
	}
	dst, err := c.make(0, in.width, in.count)
	if err != nil {
		return err
	}
	if !kernel.Multiply(dst, in.data, in.width, by, highest/by) {
		return c.fault("product does not fit in %d bytes", in.width)
	}
	return nil
}
