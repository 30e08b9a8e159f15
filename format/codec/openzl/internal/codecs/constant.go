package codecs

import (
	"math"

	numbers "github.com/chaski-eo/chaski/internal/kernel"
)

// decodeConstant repeats one element. The header says how often.
func decodeConstant(c *Call) error {
	in := c.In[0]
	count, rest := c.number()
	if rest != 0 || in.Count != 1 || count == 0 || count > math.MaxInt {
		return c.Corrupt("%d elements to repeat %d times", in.Count, count)
	}
	dst, err := c.Make(0, in.Width, int(count))
	if err != nil {
		return err
	}
	numbers.Fill(dst, in.Data)
	return nil
}
