package openzl

import "github.com/chaski-eo/chaski/codec/openzl/internal/kernel"

// decodeZigzag turns unsigned numbers back into signed ones.
func decodeZigzag(c *call) error {
	in := c.in[0]
	dst, err := c.make(0, in.width, in.count)
	if err != nil {
		return err
	}
	kernel.Zigzag(dst, in.data, in.width)
	return nil
}
