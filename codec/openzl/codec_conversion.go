package openzl

import (
	"math/bits"

	"github.com/chaski-eo/chaski/codec/openzl/internal/kernel"
)

// The conversions hand on the bytes they get; the big-endian ones turn them round.

// decodeToSerial sees the bytes of any stream.
func decodeToSerial(c *call) error {
	return c.alias(0, c.in[0], 1, len(c.in[0].data))
}

// decodeSameShape sees elements of one width as those of another type.
func decodeSameShape(c *call) error {
	in := c.in[0]
	if c.out[0].typ == Numeric && !numericWidth(in.width) {
		return c.fault("numbers of %d bytes", in.width)
	}
	return c.alias(0, in, in.width, in.count)
}

// decodeSerialToNum sees bytes as numbers; the header is the logarithm of their width.
func decodeSerialToNum(c *call) error {
	if len(c.header) != 1 || c.header[0] > 3 {
		return c.fault("header % x is not the logarithm of a width", c.header)
	}
	return c.bytesAs(1 << c.header[0])
}

// decodeSerialToStruct sees bytes as elements; the header is their width.
func decodeSerialToStruct(c *call) error {
	h := cursor{b: c.header}
	w := h.varint()
	if h.bad || h.left() > 0 || w == 0 {
		return c.fault("header % x is not a width", c.header)
	}
	if n := len(c.in[0].data); w > uint64(n) {
		// Only an empty stream has elements wider than itself.
		if n > 0 || bits.Len64(w) > 31 {
			return c.fault("elements of %d bytes in a stream of %d", w, n)
		}
	}
	return c.bytesAs(int(w))
}

// bytesAs sees the bytes of the input as elements of w bytes.
func (c *call) bytesAs(w int) error {
	n := len(c.in[0].data)
	if n%w != 0 {
		return c.fault("%d bytes are no elements of %d", n, w)
	}
	return c.alias(0, c.in[0], w, n/w)
}

func decodeSwapToSerial(c *call) error { return c.swap(1, len(c.in[0].data)) }

func decodeSwapToStruct(c *call) error { return c.swap(c.in[0].width, c.in[0].count) }

// swap turns the bytes of numbers round and gives them as count elements of width bytes.
func (c *call) swap(width, count int) error {
	in := c.in[0]
	if in.width == 1 {
		return c.alias(0, in, width, count)
	}
	dst, err := c.make(0, width, count)
	if err != nil {
		return err
	}
	kernel.SwapBytes(dst, in.data, in.width)
	return nil
}

// decodeJoinStrings makes strings of their bytes, end to end, and their lengths.
func decodeJoinStrings(c *call) error {
	bytes, sizes := c.in[0], c.in[1]
	lens, err := c.makeLens(0, sizes.count)
	if err != nil {
		return err
	}
	total, ok := kernel.Lengths(lens, sizes.data, sizes.width)
	if !ok || total != uint64(len(bytes.data)) {
		return c.fault("lengths of %d strings do not come to %d bytes", sizes.count, len(bytes.data))
	}
	c.aliasStrings(0, bytes, 0, len(bytes.data))
	return nil
}
