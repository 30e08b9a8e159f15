package codecs

import (
	"github.com/chaski-eo/chaski/internal/planes"
)

// decodeTranspose turns w elements of n bytes into n elements of w bytes.
func decodeTranspose(c *Call) error {
	in := c.In[0]
	if in.Count == 0 {
		_, err := c.Make(0, in.Width, 0)
		return err
	}
	dst, err := c.Make(0, in.Count, in.Width)
	if err != nil {
		return err
	}
	planes.Join(dst, in.Data, in.Count)
	return nil
}

// decodeTransposeSplit builds elements from streams that each hold one of their bytes. It serves
// transpose_split and the older codecs for two, four and eight streams.
func decodeTransposeSplit(c *Call) error {
	if len(c.In) == 0 {
		return c.Corrupt("no streams to join")
	}
	count := c.In[0].Count
	c.w.tabs = c.w.tabs[:0]
	for i, stream := range c.In {
		if stream.Count != count {
			return c.Corrupt("stream %d has %d bytes, the first one %d", i, stream.Count, count)
		}
		c.w.tabs = append(c.w.tabs, stream.Data)
	}
	dst, err := c.Make(0, len(c.In), count)
	if err != nil {
		return err
	}
	planes.JoinAll(dst, c.w.tabs)
	clear(c.w.tabs)
	return nil
}
