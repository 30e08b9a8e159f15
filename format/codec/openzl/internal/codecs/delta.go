package codecs

import "github.com/chaski-eo/chaski/format/codec/openzl/internal/kernel"

// deltaHeaderVersion is the first version in which the first number is delta's header.
const deltaHeaderVersion = 13

// decodeDelta sums up differences. The header is the first number; it is empty if there are no numbers.
// Before deltaHeaderVersion the first number precedes the differences in the stream.
func decodeDelta(c *Call) error {
	in := c.In[0]
	if c.Version < deltaHeaderVersion {
		dst, err := c.Make(0, in.Width, in.Count)
		if err == nil && in.Count > 0 {
			kernel.Delta(dst, in.Data[:in.Width], in.Data[in.Width:], in.Width)
		}
		return err
	}
	if len(c.Header) == 0 {
		if in.Count != 0 {
			return c.Corrupt("%d differences to no first number", in.Count)
		}
		_, err := c.Make(0, in.Width, 0)
		return err
	}
	if len(c.Header) != in.Width {
		return c.Corrupt("first number of %d bytes, differences of %d", len(c.Header), in.Width)
	}
	dst, err := c.Make(0, in.Width, in.Count+1)
	if err != nil {
		return err
	}
	kernel.Delta(dst, c.Header, in.Data, in.Width)
	return nil
}
