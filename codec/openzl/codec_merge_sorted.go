package openzl

import (
	"encoding/binary"

	"github.com/chaski-eo/chaski/codec/openzl/internal/kernel"
)

// decodeMergeSorted takes sorted lists of 32-bit numbers apart: a bit set a number says which
// lists it is in. The header is the lists' lengths; they come out end to end.
func decodeMergeSorted(c *call) error {
	sets, merged := c.in[0], c.in[1]
	if sets.count != merged.count || merged.width != 4 {
		return c.fault("%d sets for %d numbers of %d bytes", sets.count, merged.count, merged.width)
	}
	var ends [65]int
	lists := 0
	for h := (cursor{b: c.header}); h.left() > 0; lists++ {
		n := h.varint()
		if h.bad || lists == 8*sets.width || n > uint64(sets.count) {
			return c.fault("header is not the lengths of at most %d lists of at most %d numbers", 8*sets.width, sets.count)
		}
		ends[lists+1] = ends[lists] + int(n)
	}
	dst, err := c.make(0, 4, ends[lists])
	if err != nil {
		return err
	}
	at := ends
	for i := range sets.count {
		v := binary.LittleEndian.Uint32(merged.data[4*i:])
		set := kernel.LE(sets.data, i, sets.width)
		for l := range lists {
			if set>>l&1 == 0 || at[l] == ends[l+1] {
				continue
			}
			binary.LittleEndian.PutUint32(dst[4*at[l]:], v)
			at[l]++
		}
	}
	for l := range lists {
		if at[l] != ends[l+1] {
			return c.fault("list %d lacks %d numbers", l, ends[l+1]-at[l])
		}
	}
	return nil
}
