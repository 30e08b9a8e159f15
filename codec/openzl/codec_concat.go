package openzl

import (
	"encoding/binary"

	"github.com/chaski-eo/chaski/codec/openzl/internal/kernel"
)

// decodeConcat cuts a stream into the outputs it was joined from. The first input are their
// numbers of elements. It serves concat_serial, concat_num and concat_struct.
func decodeConcat(c *call) error {
	sizes, in := c.in[0], c.in[1]
	if sizes.width != 4 || sizes.count != len(c.out) {
		return c.fault("%d sizes of %d bytes for %d streams", sizes.count, sizes.width, len(c.out))
	}
	at := 0
	for i := range c.out {
		n := int(binary.LittleEndian.Uint32(sizes.data[4*i:]))
		if n > in.count-at {
			return c.fault("sizes come to more than %d elements", in.count)
		}
		if err := c.aliasPart(i, in, at*in.width, in.width, n); err != nil {
			return err
		}
		at += n
	}
	if at != in.count {
		return c.fault("sizes come to %d elements of %d", at, in.count)
	}
	return nil
}

// decodeConcatString is decodeConcat for strings.
func decodeConcatString(c *call) error {
	sizes, in := c.in[0], c.in[1]
	if sizes.width != 4 || sizes.count != len(c.out) {
		return c.fault("%d sizes of %d bytes for %d streams", sizes.count, sizes.width, len(c.out))
	}
	at, byteAt := 0, 0
	for i := range c.out {
		n := int(binary.LittleEndian.Uint32(sizes.data[4*i:]))
		if n > in.count-at {
			return c.fault("sizes come to more than %d strings", in.count)
		}
		lens, err := c.makeLens(i, n)
		if err != nil {
			return err
		}
		copy(lens, in.lens[at:])
		size := int(kernel.Sum(lens))
		c.aliasStrings(i, in, byteAt, size)
		at, byteAt = at+n, byteAt+size
	}
	if at != in.count {
		return c.fault("sizes come to %d strings of %d", at, in.count)
	}
	return nil
}

// decodeDedup gives the same numbers to every output.
func decodeDedup(c *call) error {
	in := c.in[0]
	for i := range c.out {
		if err := c.alias(i, in, in.width, in.count); err != nil {
			return err
		}
	}
	return nil
}

// maxInterleaved is the most outputs of decodeInterleave.
const maxInterleaved = 512

// decodeInterleave deals strings out to the outputs in turn. The header says how many there are.
func decodeInterleave(c *call) error {
	in := c.in[0]
	if len(c.header) != 4 {
		return c.fault("header of %d bytes", len(c.header))
	}
	n := int(binary.LittleEndian.Uint32(c.header))
	if n == 0 || n > maxInterleaved || n != len(c.out) || in.count%n != 0 {
		return c.fault("%d strings for %d streams, header says %d", in.count, len(c.out), n)
	}
	for i := range n {
		lens, err := c.makeLens(i, in.count/n)
		if err != nil {
			return err
		}
		for j := range lens {
			lens[j] = in.lens[j*n+i]
		}
		if _, err := c.makeStrings(i, int(kernel.Sum(lens))); err != nil {
			return err
		}
	}
	src := in.data
	c.d.tabs = resize(c.d.tabs, n)
	for i := range n {
		c.d.tabs[i] = c.out[i].data
	}
	for j, size := range in.lens {
		i := j % n
		c.d.tabs[i] = c.d.tabs[i][copy(c.d.tabs[i], src[:size]):]
		src = src[size:]
	}
	clear(c.d.tabs)
	return nil
}
