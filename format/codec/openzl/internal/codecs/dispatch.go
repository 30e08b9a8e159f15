package codecs

import (
	"github.com/chaski-eo/chaski/format/codec/openzl/internal/kernel"
	"github.com/chaski-eo/chaski/format/codec/openzl/internal/memory"
)

// decodeDispatchN joins segments of several streams. For each segment, a tag names the stream it comes from,
// and a number its size in bytes.
func decodeDispatchN(c *Call) error {
	tags, sizes, inputs := c.In[0], c.In[1], c.In[2:]
	maxStreams, maxTag := 255, 1
	if c.Version >= 20 {
		maxStreams, maxTag = 1<<16-1, 2
	}
	if tags.Count != sizes.Count || len(inputs) > maxStreams || tags.Width > maxTag {
		return c.Corrupt("%d tags of %d bytes and %d sizes for %d streams", tags.Count, tags.Width, sizes.Count,
			len(inputs))
	}
	total := 0
	c.w.tabs = c.w.tabs[:0]
	for _, stream := range inputs {
		total += stream.Count
		c.w.tabs = append(c.w.tabs, stream.Data)
	}
	dst, err := c.Make(0, 1, total)
	if err != nil {
		return err
	}
	for i := range tags.Count {
		tag, size := kernel.LE(tags.Data, i, tags.Width), kernel.LE(sizes.Data, i, sizes.Width)
		if tag >= uint64(len(inputs)) || size > uint64(len(c.w.tabs[tag])) {
			return c.Corrupt("segment %d of %d bytes of stream %d", i, size, tag)
		}
		dst = dst[copy(dst, c.w.tabs[tag][:size]):]
		c.w.tabs[tag] = c.w.tabs[tag][size:]
	}
	clear(c.w.tabs)
	if len(dst) > 0 {
		return c.Corrupt("%d bytes are in no segment", len(dst))
	}
	return nil
}

// decodeDispatchString joins strings of several streams. For each string, an index names its stream.
func decodeDispatchString(c *Call) error {
	indices, inputs := c.In[0], c.In[1:]
	width, maxStreams := 2, 2048
	if c.Version < 21 {
		width, maxStreams = 1, 256
	}
	if indices.Width != width || len(inputs) > maxStreams {
		return c.Corrupt("indices of %d bytes for %d streams", indices.Width, len(inputs))
	}
	total, count := 0, 0
	c.w.tabs = c.w.tabs[:0]
	for _, stream := range inputs {
		total += len(stream.Data)
		count += stream.Count
		c.w.tabs = append(c.w.tabs, stream.Data)
	}
	if count != indices.Count {
		return c.Corrupt("%d indices for %d strings", indices.Count, count)
	}
	lens, err := c.makeLens(0, count)
	if err != nil {
		return err
	}
	dst, err := c.makeStrings(0, total)
	if err != nil {
		return err
	}
	c.w.wide = memory.Resize(c.w.wide, len(inputs)) // strings taken of each stream
	clear(c.w.wide)
	for i := range lens {
		index := kernel.LE(indices.Data, i, width)
		if index >= uint64(len(inputs)) || int(c.w.wide[index]) == inputs[index].Count {
			return c.Corrupt("string %d is of stream %d, which has no more", i, index)
		}
		size := inputs[index].Lens[c.w.wide[index]]
		c.w.wide[index]++
		lens[i] = size
		dst = dst[copy(dst, c.w.tabs[index][:size]):]
		c.w.tabs[index] = c.w.tabs[index][size:]
	}
	clear(c.w.tabs)
	return nil
}

// decodeSplitByStruct joins the fields of structures: structure i is element i of every stream, stream after
// stream.
func decodeSplitByStruct(c *Call) error {
	if len(c.In) == 0 {
		return c.Corrupt("structure without fields")
	}
	count, size := c.In[0].Count, 0
	for i, field := range c.In {
		if field.Count != count {
			return c.Corrupt("field %d has %d elements, the first one %d", i, field.Count, count)
		}
		size += field.Width
	}
	dst, err := c.Make(0, 1, count*size)
	if err != nil {
		return err
	}
	pos := 0
	for _, field := range c.In {
		for element := range count {
			copy(dst[element*size+pos:], field.Data[element*field.Width:(element+1)*field.Width])
		}
		pos += field.Width
	}
	return nil
}
