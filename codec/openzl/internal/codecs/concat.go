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
	taken := 0
	for i := range c.Out {
		count := int(binary.LittleEndian.Uint32(sizes.Data[4*i:]))
		if count > in.Count-taken {
			return c.Corrupt("sizes come to more than %d elements", in.Count)
		}
		if err := c.aliasPart(i, in, taken*in.Width, in.Width, count); err != nil {
			return err
		}
		taken += count
	}
	if taken != in.Count {
		return c.Corrupt("sizes come to %d elements of %d", taken, in.Count)
	}
	return nil
}

// decodeConcatString is decodeConcat for strings.
func decodeConcatString(c *Call) error {
	sizes, in := c.In[0], c.In[1]
	if sizes.Width != 4 || sizes.Count != len(c.Out) {
		return c.Corrupt("%d sizes of %d bytes for %d streams", sizes.Count, sizes.Width, len(c.Out))
	}
	taken, offset := 0, 0
	for i := range c.Out {
		count := int(binary.LittleEndian.Uint32(sizes.Data[4*i:]))
		if count > in.Count-taken {
			return c.Corrupt("sizes come to more than %d strings", in.Count)
		}
		lens, err := c.makeLens(i, count)
		if err != nil {
			return err
		}
		copy(lens, in.Lens[taken:])
		size := int(kernel.Sum(lens))
		c.aliasStrings(i, in, offset, size)
		taken, offset = taken+count, offset+size
	}
	if taken != in.Count {
		return c.Corrupt("sizes come to %d strings of %d", taken, in.Count)
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
	count := int(binary.LittleEndian.Uint32(c.Header))
	if count == 0 || count > maxInterleaved || count != len(c.Out) || in.Count%count != 0 {
		return c.Corrupt("%d strings for %d streams, header says %d", in.Count, len(c.Out), count)
	}
	for i := range count {
		lens, err := c.makeLens(i, in.Count/count)
		if err != nil {
			return err
		}
		for j := range lens {
			lens[j] = in.Lens[j*count+i]
		}
		if _, err := c.makeStrings(i, int(kernel.Sum(lens))); err != nil {
			return err
		}
	}
	src := in.Data
	c.w.tabs = memory.Resize(c.w.tabs, count)
	for i := range count {
		c.w.tabs[i] = c.Out[i].Data
	}
	for j, size := range in.Lens {
		i := j % count
		c.w.tabs[i] = c.w.tabs[i][copy(c.w.tabs[i], src[:size]):]
		src = src[size:]
	}
	clear(c.w.tabs)
	return nil
}
