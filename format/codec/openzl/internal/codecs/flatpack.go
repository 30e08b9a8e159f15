package codecs

import (
	"math/bits"

	"github.com/chaski-eo/chaski/format/codec/openzl/internal/kernel"
	"github.com/chaski-eo/chaski/format/codec/openzl/internal/wire"
)

// decodeFlatpack looks up indices of a fixed number of bits in an alphabet of bytes. The packed indices end
// with a one bit and zeros to the end of the byte.
func decodeFlatpack(c *Call) error {
	alphabet, packed := c.In[0].Data, c.In[1].Data
	if len(alphabet) > 256 {
		return c.Corrupt("alphabet of %d bytes", len(alphabet))
	}
	nbits := wire.BitsFor(len(alphabet))
	if len(alphabet) == 1 {
		nbits = 1
	}
	if len(packed) == 0 || len(alphabet) == 0 {
		if len(packed) > 0 {
			return c.Corrupt("%d packed bytes, empty alphabet", len(packed))
		}
		_, err := c.Make(0, 1, 0)
		return err
	}
	last := packed[len(packed)-1]
	if last == 0 {
		return c.Corrupt("no end mark")
	}
	used := 8*len(packed) - 9 + bits.Len8(last)
	if used%nbits != 0 {
		return c.Corrupt("%d packed bits, %d an index", used, nbits)
	}
	dst, err := c.Make(0, 1, used/nbits)
	if err != nil {
		return err
	}
	kernel.Bitunpack(dst, packed, 1, nbits)
	if !kernel.Gather(dst, alphabet, dst, 1, 1) {
		return c.Corrupt("index past the alphabet's %d bytes", len(alphabet))
	}
	return nil
}
