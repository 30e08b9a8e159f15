package codecs

import "github.com/chaski-eo/chaski/format/codec/openzl/internal/kernel"

// decodeBitpack unpacks numbers of a fixed number of bits. The header is one byte with width and bits. A
// second byte, if there is one, says how many numbers to drop from those that the bytes could hold.
func decodeBitpack(c *Call) error {
	src := c.In[0].Data
	if len(c.Header) < 1 || len(c.Header) > 2 {
		return c.Corrupt("header of %d bytes", len(c.Header))
	}
	width, nbits := 1<<(c.Header[0]>>6), int(c.Header[0]&63)+1
	if nbits > 8*width || c.Out[0].Type == Serial && width != 1 {
		return c.Corrupt("%s stream of %d bits in %d bytes", c.Out[0].Type, nbits, width)
	}
	count := 8 * len(src) / nbits
	if len(c.Header) == 2 {
		count -= int(c.Header[1])
	}
	if count < 0 || (count*nbits+7)/8 != len(src) {
		return c.Corrupt("%d numbers of %d bits in %d bytes", count, nbits, len(src))
	}
	dst, err := c.Make(0, width, count)
	if err != nil {
		return err
	}
	kernel.Bitunpack(dst, src, width, nbits)
	return nil
}
