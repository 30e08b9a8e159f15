package openzl

import "github.com/chaski-eo/chaski/codec/openzl/internal/kernel"

// decodeBitunpack packs numbers into the given bits each: the encoder had unpacked them. The
// header is the bits and, where the last byte has bits to spare that were not zero, those.
func decodeBitunpack(c *call) error {
	in := c.in[0]
	if len(c.header) < 1 || len(c.header) > 2 || int(c.header[0]) > 8*in.width {
		return c.fault("header % x for numbers of %d bytes", c.header, in.width)
	}
	nbits := int(c.header[0])
	used := nbits * in.count
	dst, err := c.make(0, 1, (used+7)/8)
	if err != nil {
		return err
	}
	if !kernel.Bitpack(dst, in.data, in.width, nbits) {
		return c.fault("number of more than %d bits", nbits)
	}
	if len(c.header) == 2 {
		if used%8 == 0 {
			return c.fault("bits to spare in a full byte")
		}
		dst[len(dst)-1] |= c.header[1] << (used % 8)
	}
	return nil
}
