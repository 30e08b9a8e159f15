package codecs

import (
	"encoding/binary"
	"math"
	"strconv"
)

// decodePrefix restores strings that share a prefix with the string before: common holds the length of each
// shared prefix.
func decodePrefix(c *Call) error {
	in, common := c.In[0], c.In[1]
	if common.Count != in.Count || common.Width != 4 {
		return c.Corrupt("%d lengths of %d bytes for %d strings", common.Count, common.Width, in.Count)
	}
	lens, err := c.makeLens(0, in.Count)
	if err != nil {
		return err
	}
	total, last := uint64(0), uint64(0)
	for i, size := range in.Lens {
		shared := uint64(binary.LittleEndian.Uint32(common.Data[4*i:]))
		if shared > last || shared+uint64(size) > math.MaxUint32 {
			return c.Corrupt("string %d has %d bytes of one of %d", i, shared, last)
		}
		last = shared + uint64(size)
		lens[i] = uint32(last)
		// No overflow, since the sum of 2^31 strings of 2^32 bytes still fits.
		total += last
	}
	if total > uint64(c.w.Memory.Limit()) {
		return c.w.Memory.Reserve(c.w.Memory.Limit() + 1)
	}
	dst, err := c.makeStrings(0, int(total))
	if err != nil {
		return err
	}
	src, before := in.Data, dst[:0]
	for i, size := range in.Lens {
		out := dst[:lens[i]]
		copy(out, before[:lens[i]-size])
		copy(out[lens[i]-size:], src[:size])
		src, before, dst = src[size:], out, dst[lens[i]:]
	}
	return nil
}

// maxDigits is the length of the longest decimal number of 64 bits: -9223372036854775808.
const maxDigits = 20

// decodeParseInt writes signed 64-bit numbers as decimal strings.
func decodeParseInt(c *Call) error {
	in := c.In[0]
	if in.Width != 8 {
		return c.Corrupt("numbers of %d bytes", in.Width)
	}
	lens, err := c.makeLens(0, in.Count)
	if err != nil {
		return err
	}
	var digits [maxDigits]byte
	total := 0
	for i := range lens {
		size := len(strconv.AppendInt(digits[:0], int64(binary.LittleEndian.Uint64(in.Data[8*i:])), 10))
		lens[i] = uint32(size)
		total += size
	}
	dst, err := c.makeStrings(0, total)
	if err != nil {
		return err
	}
	dst = dst[:0]
	for i := range lens {
		dst = strconv.AppendInt(dst, int64(binary.LittleEndian.Uint64(in.Data[8*i:])), 10)
	}
	return nil
}
