package codecs

import "github.com/chaski-eo/chaski/format/codec/openzl/internal/kernel"

// decodeZigzag turns unsigned numbers back into signed ones.
func decodeZigzag(c *Call) error {
	in := c.In[0]
	dst, err := c.Make(0, in.Width, in.Count)
	if err != nil {
		return err
	}
	kernel.Zigzag(dst, in.Data, in.Width)
	return nil
}
