package openzl

import "github.com/chaski-eo/chaski/codec/openzl/internal/kernel"

// decodeDispatchN joins segments of several streams: a tag says which stream the next one is from,
// a number how many bytes it has.
func decodeDispatchN(c *call) error {
	tags, sizes, from := c.in[0], c.in[1], c.in[2:]
	maxStreams, maxTag := 255, 1
	if c.version >= 20 {
		maxStreams, maxTag = 1<<16-1, 2
	}
	if tags.count != sizes.count || len(from) > maxStreams || tags.width > maxTag {
		return c.fault("%d tags of %d bytes and %d sizes for %d streams", tags.count, tags.width, sizes.count, len(from))
	}
	total := 0
	c.d.tabs = c.d.tabs[:0]
	for _, s := range from {
		total += s.count
		c.d.tabs = append(c.d.tabs, s.data)
	}
	dst, err := c.make(0, 1, total)
	if err != nil {
		return err
	}
	for i := range tags.count {
		t, n := kernel.LE(tags.data, i, tags.width), kernel.LE(sizes.data, i, sizes.width)
		if t >= uint64(len(from)) || n > uint64(len(c.d.tabs[t])) {
			return c.fault("segment %d of %d bytes of stream %d", i, n, t)
		}
		dst = dst[copy(dst, c.d.tabs[t][:n]):]
		c.d.tabs[t] = c.d.tabs[t][n:]
	}
	clear(c.d.tabs)
	if len(dst) > 0 {
		return c.fault("%d bytes are in no segment", len(dst))
	}
	return nil
}

// decodeDispatchString joins strings of several streams: an index says which stream the next one
// is from.
func decodeDispatchString(c *call) error {
	indices, from := c.in[0], c.in[1:]
	width, maxStreams := 2, 2048
	if c.version < 21 {
		width, maxStreams = 1, 256
	}
	if indices.width != width || len(from) > maxStreams {
		return c.fault("indices of %d bytes for %d streams", indices.width, len(from))
	}
	total, count := 0, 0
	c.d.tabs = c.d.tabs[:0]
	for _, s := range from {
		total += len(s.data)
		count += s.count
		c.d.tabs = append(c.d.tabs, s.data)
	}
	if count != indices.count {
		return c.fault("%d indices for %d strings", indices.count, count)
	}
	lens, err := c.makeLens(0, count)
	if err != nil {
		return err
	}
	dst, err := c.makeStrings(0, total)
	if err != nil {
		return err
	}
	c.d.wide = resize(c.d.wide, len(from)) // strings taken of each stream
	clear(c.d.wide)
	for i := range lens {
		t := kernel.LE(indices.data, i, width)
		if t >= uint64(len(from)) || int(c.d.wide[t]) == from[t].count {
			return c.fault("string %d is of stream %d, which has no more", i, t)
		}
		n := from[t].lens[c.d.wide[t]]
		c.d.wide[t]++
		lens[i] = n
		dst = dst[copy(dst, c.d.tabs[t][:n]):]
		c.d.tabs[t] = c.d.tabs[t][n:]
	}
	clear(c.d.tabs)
	return nil
}

// decodeSplitByStruct joins the fields of structures: element i of every stream, stream after
// stream, makes structure i.
func decodeSplitByStruct(c *call) error {
	if len(c.in) == 0 {
		return c.fault("structure without fields")
	}
	count, size := c.in[0].count, 0
	for i, s := range c.in {
		if s.count != count {
			return c.fault("field %d has %d elements, the first one %d", i, s.count, count)
		}
		size += s.width
	}
	dst, err := c.make(0, 1, count*size)
	if err != nil {
		return err
	}
	at := 0
	for _, s := range c.in {
		for e := range count {
			copy(dst[e*size+at:], s.data[e*s.width:(e+1)*s.width])
		}
		at += s.width
	}
	return nil
}
