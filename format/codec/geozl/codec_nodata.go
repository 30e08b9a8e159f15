package geozl

import (
	"encoding/binary"
	"math"

	"github.com/chaski-eo/chaski/format/codec/geozl/internal/kernel"
	"github.com/chaski-eo/chaski/format/codec/openzl"
	"github.com/chaski-eo/chaski/internal/cast"
	numbers "github.com/chaski-eo/chaski/internal/kernel"
)

// Codes of older headers of nodata.
const (
	nodataRestore  = 1
	nodataAllValid = 2
	nodataAllHoles = 3
)

// decodeNodata restores missing samples: a bit pattern where the mask is 0. The header is the pattern, and
// possibly three samples that replace valid samples which equal the pattern. Older headers begin with a
// code, and may lack values or mask. Old and new headers differ in length, except one byte, which
// only an old header without a mask can have.
func decodeNodata(c *openzl.Call) error {
	values, mask, header := c.In[0], c.In[1], c.Header
	width := values.Width
	if mask.Width != 1 {
		return c.Corrupt("mask of %d bytes a sample", mask.Width)
	}
	count := values.Count
	switch {
	case len(header) == 1 && header[0] == nodataAllValid && mask.Count == 0:
		dst, err := c.Make(0, width, count)
		copy(dst, values.Data)
		return err
	case len(header) == 1+width+8 && header[0] == nodataAllHoles && count == 0 && mask.Count == 0:
		return allHoles(c, width)
	case len(header) == 1+width && header[0] == nodataRestore:
		header = header[1:]
	case len(header) != width && len(header) != 4*width:
		return c.Corrupt("header of %d bytes for samples of %d", len(header), width)
	}
	if count == 0 || mask.Count != count {
		return c.Corrupt("%d samples, mask of %d", count, mask.Count)
	}
	dst, err := c.Make(0, width, count)
	if err != nil {
		return err
	}
	fill := cast.ByWidth(width, restore[uint8], restore[uint16], restore[uint32], restore[uint64])
	if !fill(dst, values.Data, mask.Data, header) {
		return c.Corrupt("mask holds what is never written")
	}
	return nil
}

// restore fills dst. header holds one sample or four.
func restore[T kernel.Unsigned](dst, values, mask, header []byte) bool {
	var guards [4]T // the pattern, then its replacements
	width := binary.Size(T(0))
	for i := range len(header) / width {
		guards[i] = T(cast.Uint(header[i*width:], width))
	}
	samples, ok := cast.Values[T](values), true
	cast.Fill(dst, func(out []T) {
		if len(header) == width {
			kernel.Restore(out, samples, mask, guards[0])
		} else {
			ok = kernel.RestoreGuarded(out, samples, mask, guards)
		}
	})
	return ok
}

// allHoles returns samples that are all missing. The header is a code, the pattern and the number of samples.
func allHoles(c *openzl.Call, width int) error {
	header := c.Header
	count := binary.LittleEndian.Uint64(header[1+width:])
	if count == 0 || count > math.MaxInt64/8 {
		return c.Corrupt("%d samples", count)
	}
	dst, err := c.Make(0, width, int(count))
	if err != nil {
		return err
	}
	numbers.Fill(dst, header[1:1+width])
	return nil
}
