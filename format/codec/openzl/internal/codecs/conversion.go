package codecs

import (
	"math/bits"

	"github.com/chaski-eo/chaski/format/codec/openzl/internal/kernel"
	"github.com/chaski-eo/chaski/internal/cast"
	numbers "github.com/chaski-eo/chaski/internal/kernel"
)

// The conversions share the bytes of their input. The big-endian ones reverse the bytes of each number.

// decodeToSerial views any stream as bytes.
func decodeToSerial(c *Call) error {
	return c.alias(0, c.In[0], 1, len(c.In[0].Data))
}

// decodeSameShape views elements as elements of another type with the same width.
func decodeSameShape(c *Call) error {
	in := c.In[0]
	if c.Out[0].Type == Numeric && !cast.IsWidth(in.Width) {
		return c.Corrupt("numbers of %d bytes", in.Width)
	}
	return c.alias(0, in, in.Width, in.Count)
}

// decodeSerialToNum views bytes as numbers. The header is the logarithm of their width.
func decodeSerialToNum(c *Call) error {
	if len(c.Header) != 1 || c.Header[0] > 3 {
		return c.Corrupt("header % x is not the logarithm of a width", c.Header)
	}
	return c.bytesAs(1 << c.Header[0])
}

// decodeSerialToStruct views bytes as elements. The header is their width.
func decodeSerialToStruct(c *Call) error {
	width, rest := c.number()
	if rest != 0 || width == 0 {
		return c.Corrupt("header % x is not a width", c.Header)
	}
	if size := len(c.In[0].Data); width > uint64(size) {
		// Only an empty stream may have elements wider than itself. Their width must fit in 31 bits,
		// so the conversion to int below is safe on every machine.
		if size > 0 || bits.Len64(width) > 31 {
			return c.Corrupt("elements of %d bytes in a stream of %d", width, size)
		}
	}
	return c.bytesAs(int(width))
}

// bytesAs views the bytes of the input as elements of width bytes.
func (c *Call) bytesAs(width int) error {
	size := len(c.In[0].Data)
	if size%width != 0 {
		return c.Corrupt("%d bytes are not elements of %d", size, width)
	}
	return c.alias(0, c.In[0], width, size/width)
}

func decodeSwapToSerial(c *Call) error { return c.swap(1, len(c.In[0].Data)) }

func decodeSwapToStruct(c *Call) error { return c.swap(c.In[0].Width, c.In[0].Count) }

// swap reverses the bytes of each number and returns them as count elements of width bytes.
func (c *Call) swap(width, count int) error {
	in := c.In[0]
	if in.Width == 1 {
		return c.alias(0, in, width, count)
	}
	dst, err := c.Make(0, width, count)
	if err != nil {
		return err
	}
	copy(dst, in.Data)
	numbers.SwapBytes(dst, in.Width)
	return nil
}

// decodeJoinStrings builds strings from their bytes, which lie end to end, and their lengths.
func decodeJoinStrings(c *Call) error {
	bytes, sizes := c.In[0], c.In[1]
	lens, err := c.makeLens(0, sizes.Count)
	if err != nil {
		return err
	}
	total, ok := kernel.Lengths(lens, sizes.Data, sizes.Width)
	if !ok || total != uint64(len(bytes.Data)) {
		return c.Corrupt("lengths of %d strings do not come to %d bytes", sizes.Count, len(bytes.Data))
	}
	c.aliasStrings(0, bytes, 0, len(bytes.Data))
	return nil
}
