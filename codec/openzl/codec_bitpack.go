package openzl

import "github.com/chaski-eo/chaski/codec/openzl/internal/kernel"

// decodeBitpack unpacks numbers of a fixed number of bits. The header is one byte, width and bits,
// and possibly another: by how many numbers the stream's bytes hold too many.
func decodeBitpack(c *call) error {
	src := c.in[0].data
	if len(c.header) < 1 || len(c.header) > 2 {
		return c.fault("header of %d bytes", len(c.header))
	}
	width, nbits := 1<<(c.header[0]>>6), int(c.header[0]&63)+1
	if nbits > 8*width || c.out[0].typ == Serial && width != 1 {
		return c.fault("%s stream of %d bits in %d bytes", c.out[0].typ, nbits, width)
	}
	n := 8 * len(src) / nbits
	if len(c.header) == 2 {
		n -= int(c.header[1])
	}
	if n < 0 || (n*nbits+7)/8 != len(src) {
		return c.fault("%d numbers of %d bits in %d bytes", n, nbits, len(src))
	}
	dst, err := c.make(0, width, n)
	if err != nil {
		return err
	}
	kernel.Bitunpack(dst, src, width, nbits)
	return nil
}
