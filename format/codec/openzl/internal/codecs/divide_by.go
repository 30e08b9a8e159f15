package codecs

import "github.com/chaski-eo/chaski/format/codec/openzl/internal/kernel"

// decodeDivideBy multiplies numbers by their common divisor, which is the header.
func decodeDivideBy(c *Call) error {
	in := c.In[0]
	divisor, rest := c.number()
	highest := ^uint64(0) >> (64 - 8*in.Width)
	if rest < 0 || divisor == 0 || divisor > highest {
		return c.Corrupt("divisor %d of numbers of %d bytes", divisor, in.Width)
	}
	dst, err := c.Make(0, in.Width, in.Count)
	if err != nil {
		return err
	}
	if !kernel.Multiply(dst, in.Data, in.Width, divisor, highest/divisor) {
		return c.Corrupt("product does not fit in %d bytes", in.Width)
	}
	return nil
}
