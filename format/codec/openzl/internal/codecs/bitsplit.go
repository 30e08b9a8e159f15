package codecs

import (
	"github.com/chaski-eo/chaski/format/codec/openzl/internal/kernel"
	"github.com/chaski-eo/chaski/internal/cast"
)

// decodeBitSplit joins the bits of several streams of numbers, the first stream's lowest. The header
// is the width of the result and the bits of each stream; the last stream may be left out if it takes all
// bits that remain.
func decodeBitSplit(c *Call) error {
	if len(c.Header) == 0 || !cast.IsWidth(int(c.Header[0])) {
		return c.Corrupt("header % x does not begin with a width", c.Header)
	}
	width, counts := int(c.Header[0]), c.Header[1:]
	sum := 0
	for _, nbits := range counts {
		if nbits == 0 {
			return c.Corrupt("stream of no bits")
		}
		sum += int(nbits)
	}
	left := 8*width - sum
	maxStreams := len(counts)
	if left > 0 {
		maxStreams++ // the bits that are left are one more stream, which may be left out
	}
	if streams := len(c.In); left < 0 || streams == 0 || streams < len(counts) || streams > maxStreams {
		return c.Corrupt("%d streams, %d bit counts that come to %d", len(c.In), len(counts), sum)
	}
	count := c.In[0].Count
	for i, stream := range c.In {
		if nbits := partBits(counts, i, left); stream.Count != count || stream.Width != bytesForBits(nbits) {
			return c.Corrupt("stream %d of %d bits has %d numbers of %d bytes", i, nbits, stream.Count, stream.Width)
		}
	}
	dst, err := c.Make(0, width, count)
	if err != nil {
		return err
	}
	clear(dst)
	shift := 0
	for i, stream := range c.In {
		nbits := partBits(counts, i, left)
		if !kernel.OrShifted(dst, stream.Data, width, stream.Width, nbits, shift) {
			return c.Corrupt("number of more than %d bits in stream %d", nbits, i)
		}
		shift += nbits
	}
	return nil
}

// partBits returns the bits of stream i.
func partBits(counts []byte, i, left int) int {
	if i < len(counts) {
		return int(counts[i])
	}
	return left
}

// bytesForBits returns the width of the narrowest numbers of nbits bits.
func bytesForBits(nbits int) int {
	width := 1
	for 8*width < nbits {
		width *= 2
	}
	return width
}
