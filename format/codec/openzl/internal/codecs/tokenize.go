package codecs

import (
	"math"

	"github.com/chaski-eo/chaski/format/codec/openzl/internal/kernel"
)

// decodeTokenize looks up indices in an alphabet of elements. It serves tokenize_fixed and tokenize_numeric.
func decodeTokenize(c *Call) error {
	alphabet, indices := c.In[0], c.In[1]
	dst, err := c.Make(0, alphabet.Width, indices.Count)
	if err != nil {
		return err
	}
	if !kernel.Gather(dst, alphabet.Data, indices.Data, alphabet.Width, indices.Width) {
		return c.Corrupt("index past the alphabet's %d elements", alphabet.Count)
	}
	return nil
}

// decodeTokenizeString looks up indices in an alphabet of strings.
func decodeTokenizeString(c *Call) error {
	alphabet, indices := c.In[0], c.In[1]
	lens, err := c.makeLens(0, indices.Count)
	if err != nil {
		return err
	}
	total := uint64(0)
	for i := range lens {
		index := kernel.LE(indices.Data, i, indices.Width)
		if index >= uint64(alphabet.Count) {
			return c.Corrupt("index %d past the alphabet's %d strings", index, alphabet.Count)
		}
		lens[i] = alphabet.Lens[index]
		total += uint64(lens[i])
	}
	if total > math.MaxInt32 {
		return c.Corrupt("strings of %d bytes", total)
	}
	starts, err := c.starts(alphabet)
	if err != nil {
		return err
	}
	dst, err := c.makeStrings(0, int(total))
	if err != nil {
		return err
	}
	for i, size := range lens {
		start := starts[kernel.LE(indices.Data, i, indices.Width)]
		dst = dst[copy(dst, alphabet.Data[start:start+size]):]
	}
	return nil
}
