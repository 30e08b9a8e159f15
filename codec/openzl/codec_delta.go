package openzl

import "github.com/chaski-eo/chaski/codec/openzl/internal/kernel"

// deltaHeaderVersion is the first version in which the first number is delta's header.
const deltaHeaderVersion = 13

// decodeDelta sums up differences. The header is the first number; without one there are none.
// Before deltaHeaderVersion the first number stands before the differences.
func decodeDelta(c *call) error {
	in := c.in[0]
	if c.version < deltaHeaderVersion {
		dst, err := c.make(0, in.width, in.count)
		if err == nil && in.count > 0 {
			kernel.Delta(dst, in.data[:in.width], in.data[in.width:], in.width)
		}
		return err
	}
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
