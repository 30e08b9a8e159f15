package openzl

import "github.com/chaski-eo/chaski/codec/openzl/internal/kernel"

// decodeSentinel widens numbers and puts exceptions where a sentinel stands. The header is the
// sentinel, by default the highest number.
func decodeSentinel(c *call) error {
	values, exceptions := c.in[0], c.in[1]
	if values.width > exceptions.width {
		return c.fault("numbers of %d bytes, exceptions of %d", values.width, exceptions.width)
	}
	highest := ^uint64(0) >> (64 - 8*values.width)
	sentinel := highest
	if len(c.header) > 0 {
		h := cursor{b: c.header}
		if sentinel = h.varint(); h.bad || sentinel > highest {
			return c.fault("sentinel % x of numbers of %d bytes", c.header, values.width)
		}
	}
	dst, err := c.make(0, exceptions.width, values.count)
	if err != nil {
		return err
	}
	if !kernel.Sentinel(dst, values.data, exceptions.data, values.width, exceptions.width, sentinel) {
		return c.fault("%d exceptions are not what is needed", exceptions.count)
	}
	return nil
}

// decodeSparse puts numbers at distances: before each number, and possibly after the last one,
// stands a dominant number as often as its distance says. The header is the dominant number's
// lowest bytes.
func decodeSparse(c *call) error {
	distances, values := c.in[0], c.in[1]
	if distances.width == 8 || len(c.header) > values.width {
		return c.fault("distances of %d bytes, header of %d", distances.width, len(c.header))
	}
	if distances.count != values.count && distances.count != values.count+1 {
		return c.fault("%d distances for %d numbers", distances.count, values.count)
	}
	total := uint64(values.count)
	for i := range distances.count {
		total += kernel.LE(distances.data, i, distances.width)
	}
	if total > uint64(c.d.limit) {
		return c.d.reserve(c.d.limit + 1)
	}
	dst, err := c.make(0, values.width, int(total))
	if err != nil {
		return err
	}
	var dominant [8]byte
	copy(dominant[:], c.header)
	kernel.Sparse(dst, distances.data, values.data, dominant[:values.width], distances.width)
	return nil
}
