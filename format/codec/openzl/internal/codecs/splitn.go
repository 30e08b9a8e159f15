package codecs

import "math/bits"

// decodeSplitN joins streams of one width end to end. It serves splitn, splitn_struct and splitn_num. The
// header is the width of the result if there are no streams.
func decodeSplitN(c *Call) error {
	if len(c.In) == 0 {
		width := uint64(1)
		if len(c.Header) > 0 {
			var rest int
			if width, rest = c.number(); rest < 0 || bits.Len64(width) > 31 {
				return c.Corrupt("header % x is not a width", c.Header)
			}
		}
		_, err := c.Make(0, int(width), 0)
		return err
	}
	width, count := c.In[0].Width, 0
	for i, stream := range c.In {
		if stream.Width != width {
			return c.Corrupt("stream %d has width %d, the first one %d", i, stream.Width, width)
		}
		count += stream.Count
	}
	dst, err := c.Make(0, width, count)
	if err != nil {
		return err
	}
	for _, stream := range c.In {
		dst = dst[copy(dst, stream.Data):]
	}
	return nil
}
