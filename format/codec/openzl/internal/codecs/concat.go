package codecs

import (
	"encoding/binary"

	"github.com/chaski-eo/chaski/format/codec/openzl/internal/kernel"
	"github.com/chaski-eo/chaski/format/codec/openzl/internal/memory"
)

// eachPart cuts a stream into the outputs that it was joined from: take makes output i of count elements from element
// start on. The first input holds the counts.
func (c *Call) eachPart(elements string, take func(i, start, count int) error) error {
	sizes, in := c.In[0], c.In[1]
	if sizes.Width != 4 || sizes.Count != len(c.Out) {
		return c.Corrupt("%d sizes of %d bytes for %d streams", sizes.Count, sizes.Width, len(c.Out))
	}
	start := 0
	for i := range c.Out {
		count := int(binary.LittleEndian.Uint32(sizes.Data[4*i:]))
		if count > in.Count-start {
			return c.Corrupt("sizes come to more than %d %s", in.Count, elements)
		}
		if err := take(i, start, count); err != nil {
			return err
		}
		start += count
	}
	if start != in.Count {
		return c.Corrupt("sizes come to %d %s of %d", start, elements, in.Count)
	}
	return nil
}

// decodeConcat serves concat_serial, concat_num and concat_struct.
func decodeConcat(c *Call) error {
	in := c.In[1]
	return c.eachPart("elements", func(i, start, count int) error {
		return c.aliasPart(i, in, start*in.Width, in.Width, count)
	})
}

// decodeConcatString is decodeConcat for strings.
func decodeConcatString(c *Call) error {
	in, offset := c.In[1], 0
	return c.eachPart("strings", func(i, start, count int) error {
		lens, err := c.makeLens(i, count)
		if err != nil {
			return err
		}
		copy(lens, in.Lens[start:])
		size := int(kernel.Sum(lens))
		c.aliasStrings(i, in, offset, size)
		offset += size
		return nil
	})
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
