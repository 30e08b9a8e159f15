package openzl

import (
	"encoding/binary"
	"math"
	"strconv"
)

// decodePrefix puts before each string the number of bytes it has in common with the one before.
func decodePrefix(c *call) error {
	in, common := c.in[0], c.in[1]
	if common.count != in.count || common.width != 4 {
		return c.fault("%d lengths of %d bytes for %d strings", common.count, common.width, in.count)
	}
	lens, err := c.makeLens(0, in.count)
	if err != nil {
		return err
	}
	total, last := uint64(0), uint64(0)
	for i, n := range in.lens {
		shared := uint64(binary.LittleEndian.Uint32(common.data[4*i:]))
		if shared > last || shared+uint64(n) > math.MaxUint32 {
			return c.fault("string %d has %d bytes of one of %d", i, shared, last)
		}
		last = shared + uint64(n)
		lens[i] = uint32(last)
		// The sum of 2^31 strings of 2^32 bytes still fits.
		total += last
	}
	if total > uint64(c.d.limit) {
		return c.d.reserve(c.d.limit + 1)
	}
	dst, err := c.makeStrings(0, int(total))
	if err != nil {
		return err
	}
	src, before := in.data, dst[:0]
	for i, n := range in.lens {
		own := dst[:lens[i]]
		copy(own, before[:lens[i]-n])
		copy(own[lens[i]-n:], src[:n])
		src, before, dst = src[n:], own, dst[lens[i]:]
	}
	return nil
}

// maxDigits is the longest decimal number of 64 bits, with its sign.
const maxDigits = 20

// decodeParseInt writes signed 64-bit numbers as decimal strings.
func decodeParseInt(c *call) error {
	in := c.in[0]
	if in.width != 8 {
		return c.fault("numbers of %d bytes", in.width)
	}
	lens, err := c.makeLens(0, in.count)
	if err != nil {
		return err
	}
	var digits [maxDigits]byte
	total := 0
	for i := range lens {
		n := len(strconv.AppendInt(digits[:0], int64(binary.LittleEndian.Uint64(in.data[8*i:])), 10))
		lens[i] = uint32(n)
		total += n
	}
	dst, err := c.makeStrings(0, total)
	if err != nil {
		return err
	}
	dst = dst[:0]
	for i := range lens {
		dst = strconv.AppendInt(dst, int64(binary.LittleEndian.Uint64(in.data[8*i:])), 10)
	}
	return nil
}
