package openzl

import "github.com/chaski-eo/chaski/codec/openzl/internal/kernel"

// decodeRangePack adds a minimum to numbers and widens them. The header is the width, followed by
// the minimum unless that is zero.
func decodeRangePack(c *call) error {
	in := c.in[0]
	if len(c.header) == 0 {
		return c.fault("no header")
	}
	width := int(c.header[0])
	if !numericWidth(width) || width < in.width || len(c.header) != 1 && len(c.header) != 1+width {
		return c.fault("header % x for numbers of %d bytes", c.header, in.width)
	}
	var low uint64
	if len(c.header) > 1 {
		low = kernel.LE(c.header[1:], 0, width)
	}
	dst, err := c.make(0, width, in.count)
	if err != nil {
		return err
	}
	kernel.Widen(dst, in.data, width, in.width, low)
	return nil
}
