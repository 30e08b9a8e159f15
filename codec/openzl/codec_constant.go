package openzl

import (
	"math"

	"github.com/chaski-eo/chaski/codec/openzl/internal/kernel"
)

// decodeConstant repeats one element. The header says how often.
func decodeConstant(c *call) error {
	in := c.in[0]
	h := cursor{b: c.header}
	n := h.varint()
	if in.count != 1 || h.bad || h.left() > 0 || n == 0 || n > math.MaxInt {
		return c.fault("%d elements to repeat %d times", in.count, n)
	}
	dst, err := c.make(0, in.width, int(n))
	if err != nil {
		return err
	}
	kernel.Repeat(dst, in.data)
	return nil
}
