package geozl

import (
	"encoding/binary"
	"math"

	"github.com/chaski-eo/chaski/format/codec/geozl/internal/kernel"
	"github.com/chaski-eo/chaski/format/codec/openzl"
	"github.com/chaski-eo/chaski/internal/cast"
	numbers "github.com/chaski-eo/chaski/internal/kernel"
)

// The codecs of this file combine two streams of equal length. Those after decodeDeinterleave occur in old files
// only and are therefore not tuned: their numbers are read one by one.

// decodeDeinterleave takes samples from two lanes in turn: the real and imaginary parts of complex numbers.
func decodeDeinterleave(c *openzl.Call) error {
	first, second := c.In[0], c.In[1]
	if first.Width != second.Width || first.Count != second.Count && first.Count != second.Count+1 {
		return c.Corrupt("lanes of %d samples of %d bytes and %d of %d", first.Count, first.Width, second.Count,
			second.Width)
	}
	dst, err := c.Make(0, first.Width, first.Count+second.Count)
	if err != nil {
		return err
	}
	width := first.Width
	numbers.CopyStrided(dst, first.Data, first.Count, 2*width, width, width)
	if second.Count > 0 {
		numbers.CopyStrided(dst[width:], second.Data, second.Count, 2*width, width, width)
	}
	return nil
}

// decodeBinOffset adds the lower bound of its bin to every offset. The header is the number of bins and, for
// each bin, its lower bound and the number of bits of its offsets.
func decodeBinOffset(c *openzl.Call) error {
	bins, offsets, header := c.In[0], c.In[1], c.Header
	width := offsets.Width
	if bins.Width != 1 || bins.Count != offsets.Count {
		return c.Corrupt("%d bins of %d bytes for %d offsets", bins.Count, bins.Width, offsets.Count)
	}
	if len(header) == 0 || header[0] == 0 || len(header) != 1+int(header[0])*(width+1) {
		return c.Corrupt("header of %d bytes", len(header))
	}
	var lower, mask [256]uint64
	for i := range int(header[0]) {
		bin := header[1+i*(width+1):]
		nbits := bin[width]
		if int(nbits) > 8*width {
			return c.Corrupt("offsets of %d bits", nbits)
		}
		lower[i], mask[i] = cast.Uint(bin, width), 1<<nbits-1
	}
	dst, err := c.Make(0, width, offsets.Count)
	if err != nil {
		return err
	}
	if !kernel.AddBins(dst, bins.Data, offsets.Data, width, &lower, &mask, int(header[0])) {
		return c.Corrupt("bin that is not declared, or an offset too large for it")
	}
	return nil
}

// pair returns two inputs of equal width and length.
func pair(c *openzl.Call) (a, b *openzl.Stream, err error) {
	a, b = c.In[0], c.In[1]
	if a.Width != b.Width || a.Count != b.Count {
		err = c.Corrupt("%d samples of %d bytes and %d of %d", a.Count, a.Width, b.Count, b.Width)
	}
	return a, b, err
}

// decodeIntMult adds remainders to multiples of a base, which is the header.
func decodeIntMult(c *openzl.Call) error {
	quotients, rests, err := pair(c)
	if err != nil {
		return err
	}
	if len(c.Header) != quotients.Width || cast.Uint(c.Header, quotients.Width) < 2 {
		return c.Corrupt("header % x is not a base", c.Header)
	}
	dst, err := c.Make(0, quotients.Width, quotients.Count)
	if err != nil {
		return err
	}
	if !kernel.MulAdd(dst, quotients.Data, rests.Data, quotients.Width, cast.Uint(c.Header, quotients.Width)) {
		return c.Corrupt("remainder that is not below its base")
	}
	return nil
}

// floatPair is pair for floats.
func floatPair(c *openzl.Call) (a, b *openzl.Stream, err error) {
	if a, b, err = pair(c); err == nil && a.Width < 4 {
		err = c.Corrupt("floats of %d bytes", a.Width)
	}
	return a, b, err
}

// decodeFloatQuant restores the low bits of mantissas. The header is the number of these bits.
func decodeFloatQuant(c *openzl.Call) error {
	high, low, err := floatPair(c)
	if err != nil {
		return err
	}
	mantissa := 23
	if high.Width == 8 {
		mantissa = 52
	}
	if len(c.Header) != 1 || c.Header[0] == 0 || int(c.Header[0]) > mantissa {
		return c.Corrupt("header % x", c.Header)
	}
	nbits := uint(c.Header[0])
	dst, err := c.Make(0, high.Width, high.Count)
	if err != nil {
		return err
	}
	if !kernel.LowBits(dst, high.Data, low.Data, high.Width, nbits) {
		return c.Corrupt("lower part of more than %d bits", nbits)
	}
	return nil
}

// decodeFloatMult moves multiples of a base by units in the last place. The header is the base.
func decodeFloatMult(c *openzl.Call) error {
	multiples, adjust, err := floatPair(c)
	if err != nil {
		return err
	}
	if len(c.Header) != 8 {
		return c.Corrupt("header of %d bytes", len(c.Header))
	}
	base := math.Float64frombits(binary.LittleEndian.Uint64(c.Header))
	if base == 0 || base != base {
		return c.Corrupt("base %v", base)
	}
	dst, err := c.Make(0, multiples.Width, multiples.Count)
	if err != nil {
		return err
	}
	if multiples.Width == 4 {
		cast.Fill(dst, func(out []uint32) {
			kernel.Multiples32(out, cast.Values[uint32](multiples.Data), cast.Values[uint32](adjust.Data), float32(base))
		})
	} else {
		cast.Fill(dst, func(out []uint64) {
			kernel.Multiples64(out, cast.Values[uint64](multiples.Data), cast.Values[uint64](adjust.Data), base)
		})
	}
	return nil
}
