package codecs

import "github.com/chaski-eo/chaski/format/codec/openzl/internal/kernel"

// decodeBitunpack packs numbers into a fixed number of bits, because the encoder unpacked them. The header
// is the number of bits and, if the last byte has spare bits that are not zero, those bits.
func decodeBitunpack(c *Call) error {
	in := c.In[0]
	if len(c.Header) < 1 || len(c.Header) > 2 || int(c.Header[0]) > 8*in.Width {
		return c.Corrupt("header % x for numbers of %d bytes", c.Header, in.Width)
	}
	nbits := int(c.Header[0])
	used := nbits * in.Count
	dst, err := c.Make(0, 1, (used+7)/8)
	if err != nil {
		return err
	}
	if !kernel.Bitpack(dst, in.Data, in.Width, nbits) {
		return c.Corrupt("number of more than %d bits", nbits)
	}
	if len(c.Header) == 2 {
		if used%8 == 0 {
			return c.Corrupt("bits to spare in a full byte")
		}
		dst[len(dst)-1] |= c.Header[1] << (used % 8)
	}
	return nil
}
