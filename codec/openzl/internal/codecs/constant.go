package codecs

import (
	"math"

	"github.com/chaski-eo/chaski/codec/openzl/internal/wire"
	numbers "github.com/chaski-eo/chaski/internal/kernel"
)

// decodeConstant repeats one element. The header says how often.
func decodeConstant(c *Call) error {
	in := c.In[0]
	h := wire.Cursor{B: c.Header}
	n := h.Varint()
	if whole := !h.Bad && h.Left() == 0; !whole || in.Count != 1 || n == 0 || n > math.MaxInt {
		return c.Corrupt("%d elements to repeat %d times", in.Count, n)
	}
	dst, err := c.Make(0, in.Width, int(n))
	if err != nil {
		return err
	}
	numbers.Fill(dst, in.Data)
	return nil
}
