package codecs

import (
	"github.com/chaski-eo/chaski/format/codec/openzl/internal/kernel"
	"github.com/chaski-eo/chaski/internal/cast"
)

// decodeRangePack adds a minimum to numbers and widens them. The header is the width, followed by the
// minimum unless that is zero.
func decodeRangePack(c *Call) error {
	in := c.In[0]
	if len(c.Header) == 0 {
		return c.Corrupt("no header")
	}
	width := int(c.Header[0])
	if !cast.IsWidth(width) || width < in.Width || len(c.Header) != 1 && len(c.Header) != 1+width {
		return c.Corrupt("header % x for numbers of %d bytes", c.Header, in.Width)
	}
	var low uint64
	if len(c.Header) > 1 {
		low = kernel.LE(c.Header[1:], 0, width)
	}
	dst, err := c.Make(0, width, in.Count)
	if err != nil {
		return err
	}
	kernel.Widen(dst, in.Data, width, in.Width, low)
	return nil
}
