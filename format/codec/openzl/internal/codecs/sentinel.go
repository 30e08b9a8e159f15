package codecs

import "github.com/chaski-eo/chaski/format/codec/openzl/internal/kernel"

// decodeSentinel widens numbers and replaces every sentinel by the next exception. The header is the
// sentinel; without it, the highest number is.
func decodeSentinel(c *Call) error {
	values, exceptions := c.In[0], c.In[1]
	if values.Width > exceptions.Width {
		return c.Corrupt("numbers of %d bytes, exceptions of %d", values.Width, exceptions.Width)
	}
	highest := ^uint64(0) >> (64 - 8*values.Width)
	sentinel := highest
	if len(c.Header) > 0 {
		var rest int
		if sentinel, rest = c.number(); rest < 0 || sentinel > highest {
			return c.Corrupt("sentinel % x of numbers of %d bytes", c.Header, values.Width)
		}
	}
	dst, err := c.Make(0, exceptions.Width, values.Count)
	if err != nil {
		return err
	}
	if !kernel.Sentinel(dst, values.Data, exceptions.Data, values.Width, exceptions.Width, sentinel) {
		return c.Corrupt("%d exceptions are more or fewer than sentinels", exceptions.Count)
	}
	return nil
}

// decodeSparse restores numbers between runs of a dominant number: each distance is the length of the run
// before a number, and possibly of one after the last number. The header holds the lowest bytes of the
// dominant number.
func decodeSparse(c *Call) error {
	distances, values := c.In[0], c.In[1]
	if distances.Width == 8 || len(c.Header) > values.Width {
		return c.Corrupt("distances of %d bytes, header of %d", distances.Width, len(c.Header))
	}
	if distances.Count != values.Count && distances.Count != values.Count+1 {
		return c.Corrupt("%d distances for %d numbers", distances.Count, values.Count)
	}
	total := uint64(values.Count)
	for i := range distances.Count {
		total += kernel.LE(distances.Data, i, distances.Width)
	}
	if total > uint64(c.w.Memory.Limit()) {
		return c.w.Memory.Reserve(c.w.Memory.Limit() + 1)
	}
	dst, err := c.Make(0, values.Width, int(total))
	if err != nil {
		return err
	}
	var dominant [8]byte
	copy(dominant[:], c.Header)
	kernel.Sparse(dst, distances.Data, values.Data, dominant[:values.Width], distances.Width)
	return nil
}
