package geozl

import (
	"encoding/binary"
	"math"

	"github.com/chaski-eo/chaski/codec/geozl/internal/kernel"
	"github.com/chaski-eo/chaski/codec/openzl"
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
// code, and may lack values or mask. Old and new headers never have the same length, except one byte, which
// only an old header without a mask can have.
func decodeNodata(c *openzl.Call) error {
	values, mask, h := c.In[0], c.In[1], c.Header
	w := values.Width
	if mask.Width != 1 {
		return c.Corrupt("mask of %d bytes a sample", mask.Width)
	}
	n := values.Count
	switch {
	case len(h) == 1 && h[0] == nodataAllValid && mask.Count == 0:
		dst, err := c.Make(0, w, n)
		copy(dst, values.Data)
		return err
	case len(h) == 1+w+8 && h[0] == nodataAllHoles && n == 0 && mask.Count == 0:
		return allHoles(c, w)
	case len(h) == 1+w && h[0] == nodataRestore:
		h = h[1:]
	case len(h) != w && len(h) != 4*w:
		return c.Corrupt("header of %d bytes for samples of %d", len(h), w)
	}
	if n == 0 || mask.Count != n {
		return c.Corrupt("%d samples, mask of %d", n, mask.Count)
	}
	dst, err := c.Make(0, w, n)
	if err != nil {
		return err
	}
	fill := cast.ByWidth(w, restore[uint8], restore[uint16], restore[uint32], restore[uint64])
	if !fill(dst, values.Data, mask.Data, h) {
		return c.Corrupt("mask holds what is never written")
	}
	return nil
}

// restore fills dst. h holds one sample or four.
func restore[T kernel.Unsigned](dst, values, mask, h []byte) bool {
	var guards [4]T // the pattern, then its replacements
	w := size[T]()
	for i := range len(h) / w {
		guards[i] = T(cast.Uint(h[i*w:], w))
	}
	v, ok := read[T](values), true
	cast.Fill(dst, func(d []T) {
		if len(h) == w {
			kernel.Restore(d, v, mask, guards[0])
		} else {
			ok = kernel.RestoreGuarded(d, v, mask, guards)
		}
	})
	return ok
}

// allHoles returns samples that are all missing. The header is a code, the pattern and the number of samples.
func allHoles(c *openzl.Call, w int) error {
	h := c.Header
	n := binary.LittleEndian.Uint64(h[1+w:])
	if n == 0 || n > math.MaxInt64/8 {
		return c.Corrupt("%d samples", n)
	}
	dst, err := c.Make(0, w, int(n))
	if err != nil {
		return err
	}
	numbers.Fill(dst, h[1:1+w])
	return nil
}
