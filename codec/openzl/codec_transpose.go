package openzl

import "github.com/chaski-eo/chaski/codec/openzl/internal/kernel"

// decodeTranspose turns w elements of n bytes into n elements of w.
func decodeTranspose(c *call) error {
	in := c.in[0]
	if in.count == 0 {
		_, err := c.make(0, in.width, 0)
		return err
	}
	dst, err := c.make(0, in.count, in.width)
	if err != nil {
		return err
	}
	kernel.Transpose(dst, in.data, in.count)
	return nil
}

// decodeTransposeSplit makes elements whose bytes stand in one stream each. It serves
// transpose_split and the older ones for two, four and eight streams.
func decodeTransposeSplit(c *call) error {
	if len(c.in) == 0 {
		return c.fault("no streams to join")
	}
	n := c.in[0].count
	c.d.tabs = c.d.tabs[:0]
	for i, s := range c.in {
		if s.count != n {
			return c.fault("stream %d has %d bytes, the first one %d", i, s.count, n)
		}
		c.d.tabs = append(c.d.tabs, s.data)
	}
	dst, err := c.make(0, len(c.in), n)
	if err != nil {
		return err
	}
	kernel.Join(dst, c.d.tabs)
	clear(c.d.tabs)
	return nil
}
