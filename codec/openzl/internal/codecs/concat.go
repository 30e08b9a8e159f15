package codecs

import (
	"encoding/binary"

	"github.com/chaski-eo/chaski/codec/openzl/internal/kernel"
	"github.com/chaski-eo/chaski/codec/openzl/internal/memory"
)

// decodeConcat cuts a stream into the outputs that it was joined from. The first input holds their sizes in
// elements. It serves concat_serial, concat_num and concat_struct.
func decodeConcat(c *Call) error {
	sizes, in := c.In[0], c.In[1]
	if sizes.Width != 4 || sizes.Count != len(c.Out) {
		return c.Corrupt("%d sizes of %d bytes for %d streams", sizes.Count, sizes.Width, len(c.Out))
	}
	pos := 0
	for i := range c.Out {
		n := int(binary.LittleEndian.Uint32(sizes.Data[4*i:]))
		if n > in.Count-pos {
			return c.Corrupt("sizes come to more than %d elements", in.Count)
		}
		if err := c.aliasPart(i, in, pos*in.Width, in.Width, n); err != nil {
			return err
		}
		pos += n
	}
	if pos != in.Count {
		return c.Corrupt("sizes come to %d elements of %d", pos, in.Count)
	}
	return nil
}

// decodeConcatString is decodeConcat for strings.
func decodeConcatString(c *Call) error {
	sizes, in := c.In[0], c.In[1]
	if sizes.Width != 4 || sizes.Count != len(c.Out) {
		return c.Corrupt("%d sizes of %d bytes for %d streams", sizes.Count, sizes.Width, len(c.Out))
	}
	pos, byteAt := 0, 0
	for i := range c.Out {
		n := int(binary.LittleEndian.Uint32(sizes.Data[4*i:]))
		if n > in.Count-pos {
			return c.Corrupt("sizes come to more than %d strings", in.Count)
		}
		lens, err := c.makeLens(i, n)
		if err != nil {
			return err
		}
		copy(lens, in.Lens[pos:])
		size := int(kernel.Sum(lens))
		c.aliasStrings(i, in, byteAt, size)
		pos, byteAt = pos+n, byteAt+size
	}
	if pos != in.Count {
		return c.Corrupt("sizes come to %d strings of %d", pos, in.Count)
	}
	return nil
}

// decodeDedup gives the same numbers to every output.
func decodeDedup(c *Call) error {
	in := c.In[0]
	for i := range c.Out {
		if err := c.alias(i, in, in.Width, in.Count); err != nil {
			return err
		}
	}
	return nil
}

// maxInterleaved is the largest number of outputs of decodeInterleave.
const maxInterleaved = 512

// decodeInterleave deals strings out to the outputs in turn. The header says how many there are.
func decodeInterleave(c *Call) error {
	in := c.In[0]
	if len(c.Header) != 4 {
		return c.Corrupt("header of %d bytes", len(c.Header))
	}
	n := int(binary.LittleEndian.Uint32(c.Header))
	if n == 0 || n > maxInterleaved || n != len(c.Out) || in.Count%n != 0 {
		return c.Corrupt("%d strings for %d streams, header says %d", in.Count, len(c.Out), n)
	}
	for i := range n {
		lens, err := c.makeLens(i, in.Count/n)
		if err != nil {
			return err
		}
		for j := range lens {
			lens[j] = in.Lens[j*n+i]
		}
		if _, err := c.makeStrings(i, int(kernel.Sum(lens))); err != nil {
			return err
		}
	}
	src := in.Data
	c.w.tabs = memory.Resize(c.w.tabs, n)
	for i := range n {
		c.w.tabs[i] = c.Out[i].Data
	}
	for j, size := range in.Lens {
		i := j % n
		c.w.tabs[i] = c.w.tabs[i][copy(c.w.tabs[i], src[:size]):]
		src = src[size:]
	}
	clear(c.w.tabs)
	return nil
}
