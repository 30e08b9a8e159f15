package openzl

import (
	"math/bits"

	"github.com/chaski-eo/chaski/codec/openzl/internal/kernel"
)

// decodeFlatpack looks indices of a fixed number of bits up in an alphabet of bytes. The packed
// indices end with a one bit and zeros up to the byte's end.
func decodeFlatpack(c *call) error {
	alphabet, packed := c.in[0].data, c.in[1].data
	if len(alphabet) > 256 {
		return c.fault("alphabet of %d bytes", len(alphabet))
	}
	nbits := bitsFor(len(alphabet))
	if len(alphabet) == 1 {
		nbits = 1
	}
	if len(packed) == 0 || len(alphabet) == 0 {
		if len(packed) > 0 {
			return c.fault("%d packed bytes, empty alphabet", len(packed))
		}
		_, err := c.make(0, 1, 0)
		return err
	}
	last := packed[len(packed)-1]
	if last == 0 {
		return c.fault("no end mark")
	}
	used := 8*len(packed) - 9 + bits.Len8(last)
	if used%nbits != 0 {
		return c.fault("%d packed bits, %d an index", used, nbits)
	}
	dst, err := c.make(0, 1, used/nbits)
	if err != nil {
		return err
	}
	kernel.Bitunpack(dst, packed, 1, nbits)
	c.d.look = [256]byte{}
	copy(c.d.look[:], alphabet)
	if !kernel.Lookup(dst, &c.d.look, len(alphabet)) {
		return c.fault("index past the alphabet's %d bytes", len(alphabet))
	}
	return nil
}
