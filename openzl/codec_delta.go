package openzl

import "github.com/chaski-eo/chaski/openzl/internal/kernel"

// decodeDelta sums up differences. The header is the first number; without one there are none.
func decodeDelta(c *call) error {
	in := c.in[0]
	if len(c.header) == 0 {
		if in.count != 0 {
			return c.fault("%d differences to no first number", in.count)
		}
		_, err := c.make(0, in.width, 0)
		return err
	}
	if len(c.header) != in.width {
		return c.fault("first number of %d bytes, differences of %d", len(c.header), in.width)
	}
	dst, err := c.make(0, in.width, in.count+1)
	if err != nil {
		return err
	}
	kernel.Delta(dst, c.header, in.data, in.width)
	return nil
}
