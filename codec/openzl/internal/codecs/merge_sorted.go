package codecs

import (
	"encoding/binary"

	"github.com/chaski-eo/chaski/codec/openzl/internal/kernel"
	"github.com/chaski-eo/chaski/codec/openzl/internal/wire"
)

// decodeMergeSorted separates sorted lists of 32-bit numbers that were merged. A bit set for each number
// names its lists. The header holds the lengths of the lists. The result is the lists end to end.
func decodeMergeSorted(c *Call) error {
	sets, merged := c.In[0], c.In[1]
	if sets.Count != merged.Count || merged.Width != 4 {
		return c.Corrupt("%d sets for %d numbers of %d bytes", sets.Count, merged.Count, merged.Width)
	}
	var ends [65]int
	lists := 0
	for h := (wire.Cursor{B: c.Header}); h.Left() > 0; lists++ {
		n := h.Varint()
		if h.Bad || lists == 8*sets.Width || n > uint64(sets.Count) {
			return c.Corrupt("header is not the lengths of at most %d lists of at most %d numbers",
				8*sets.Width, sets.Count)
		}
		ends[lists+1] = ends[lists] + int(n)
	}
	dst, err := c.Make(0, 4, ends[lists])
	if err != nil {
		return err
	}
	next := ends
	for i := range sets.Count {
		v := binary.LittleEndian.Uint32(merged.Data[4*i:])
		set := kernel.LE(sets.Data, i, sets.Width)
		for l := range lists {
			if set>>l&1 == 0 || next[l] == ends[l+1] {
				continue
			}
			binary.LittleEndian.PutUint32(dst[4*next[l]:], v)
			next[l]++
		}
	}
	for l := range lists {
		if next[l] != ends[l+1] {
			return c.Corrupt("list %d lacks %d numbers", l, ends[l+1]-next[l])
		}
	}
	return nil
}
