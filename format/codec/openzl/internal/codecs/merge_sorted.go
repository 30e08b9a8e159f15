package codecs

import (
	"encoding/binary"

	"github.com/chaski-eo/chaski/format/codec/openzl/internal/kernel"
	"github.com/chaski-eo/chaski/format/codec/openzl/internal/wire"
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
	for header := (wire.Cursor{B: c.Header}); header.Left() > 0; lists++ {
		length := header.Varint()
		if header.Bad || lists == 8*sets.Width || length > uint64(sets.Count) {
			return c.Corrupt("header is not the lengths of at most %d lists of at most %d numbers",
				8*sets.Width, sets.Count)
		}
		ends[lists+1] = ends[lists] + int(length)
	}
	dst, err := c.Make(0, 4, ends[lists])
	if err != nil {
		return err
	}
	next := ends
	for i := range sets.Count {
		number := binary.LittleEndian.Uint32(merged.Data[4*i:])
		set := kernel.LE(sets.Data, i, sets.Width)
		for list := range lists {
			if set>>list&1 == 0 || next[list] == ends[list+1] {
				continue
			}
			binary.LittleEndian.PutUint32(dst[4*next[list]:], number)
			next[list]++
		}
	}
	for list := range lists {
		if next[list] != ends[list+1] {
			return c.Corrupt("list %d lacks %d numbers", list, ends[list+1]-next[list])
		}
	}
	return nil
}
