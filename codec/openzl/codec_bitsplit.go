package openzl

import "github.com/chaski-eo/chaski/codec/openzl/internal/kernel"

// decodeBitSplit joins the bits of several streams of numbers, the first stream's lowest. The
// header is the width of the result and the bits of each stream, without those of the last one
// where it takes all that are left.
func decodeBitSplit(c *call) error {
	if len(c.header) == 0 || !numericWidth(int(c.header[0])) {
		return c.fault("header % x does not begin with a width", c.header)
	}
	width, given := int(c.header[0]), c.header[1:]
	sum := 0
	for _, n := range given {
		if n == 0 {
			return c.fault("stream of no bits")
		}
		sum += int(n)
	}
	left := 8*width - sum
	if left < 0 || len(c.in) == 0 || len(c.in) != len(given) && (len(c.in) != len(given)+1 || left == 0) {
		return c.fault("%d streams, %d bit counts that come to %d", len(c.in), len(given), sum)
	}
	count := c.in[0].count
	for i, s := range c.in {
		if n := partBits(given, i, left); s.count != count || s.width != bytesForBits(n) {
			return c.fault("stream %d of %d bits has %d numbers of %d bytes", i, n, s.count, s.width)
		}
	}
	dst, err := c.make(0, width, count)
	if err != nil {
		return err
	}
	clear(dst)
	shift := 0
	for i, s := range c.in {
		n := partBits(given, i, left)
		if !kernel.OrShifted(dst, s.data, width, s.width, n, shift) {
			return c.fault("number of more than %d bits in stream %d", n, i)
		}
		shift += n
	}
	return nil
}

// partBits returns the bits of stream i.
func partBits(given []byte, i, left int) int {
	if i < len(given) {
		return int(given[i])
	}
	return left
}

// bytesForBits returns the width of the narrowest numbers of n bits.
func bytesForBits(n int) int {
	w := 1
	for 8*w < n {
		w *= 2
	}
	return w
}
