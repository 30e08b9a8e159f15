package openzl

import "math/bits"

// decodeSplitN joins streams of one width end to end. It serves splitn, splitn_struct and
// splitn_num. The header is the width where there are no streams.
func decodeSplitN(c *call) error {
	if len(c.in) == 0 {
		width := uint64(1)
		if len(c.header) > 0 {
			h := cursor{b: c.header}
			if width = h.varint(); h.bad || bits.Len64(width) > 31 {
				return c.fault("header % x is not a width", c.header)
			}
		}
		_, err := c.make(0, int(width), 0)
		return err
	}
	width, count := c.in[0].width, 0
	for i, s := range c.in {
		if s.width != width {
			return c.fault("stream %d has width %d, the first one %d", i, s.width, width)
		}
		count += s.count
	}
	dst, err := c.make(0, width, count)
	if err != nil {
		return err
	}
	for _, s := range c.in {
		dst = dst[copy(dst, s.data):]
	}
	return nil
}
