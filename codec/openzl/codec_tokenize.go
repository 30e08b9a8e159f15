package openzl

import (
	"math"

	"github.com/chaski-eo/chaski/codec/openzl/internal/kernel"
)

// decodeTokenize looks indices up in an alphabet of elements. It serves tokenize_fixed and
// tokenize_numeric.
func decodeTokenize(c *call) error {
	alphabet, indices := c.in[0], c.in[1]
	dst, err := c.make(0, alphabet.width, indices.count)
	if err != nil {
		return err
	}
	if !kernel.Gather(dst, alphabet.data, indices.data, alphabet.width, indices.width) {
		return c.fault("index past the alphabet's %d elements", alphabet.count)
	}
	return nil
}

// decodeTokenizeString looks indices up in an alphabet of strings.
func decodeTokenizeString(c *call) error {
	alphabet, indices := c.in[0], c.in[1]
	lens, err := c.makeLens(0, indices.count)
	if err != nil {
		return err
	}
	total := uint64(0)
	for i := range lens {
		k := kernel.LE(indices.data, i, indices.width)
		if k >= uint64(alphabet.count) {
			return c.fault("index %d past the alphabet's %d strings", k, alphabet.count)
		}
		lens[i] = alphabet.lens[k]
		total += uint64(lens[i])
	}
	if total > math.MaxInt32 {
		return c.fault("strings of %d bytes", total)
	}
	starts, err := c.starts(alphabet)
	if err != nil {
		return err
	}
	dst, err := c.makeStrings(0, int(total))
	if err != nil {
		return err
	}
	for i, n := range lens {
		from := starts[kernel.LE(indices.data, i, indices.width)]
		dst = dst[copy(dst, alphabet.data[from:from+n]):]
	}
	return nil
}
