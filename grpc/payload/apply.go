package payload

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/chaski-eo/chaski/format/dtype"
	"github.com/chaski-eo/chaski/internal/kernel"
	"github.com/chaski-eo/chaski/loader/batch"
)

// converted makes out, which has all but the mask, the data of t.
func converted(t *batch.Tensor, out []byte) error {
	if len(out) > 0 {
		if err := fill(out, t.Convert); err != nil {
			return fmt.Errorf("tensor %q: %w", t.Name, err)
		}
	}
	t.DType, t.Data, t.Convert = t.Convert.To, out, nil
	return nil
}

// fill writes c.Fill to the elements whose mask is 0.
func fill(out []byte, c *batch.Convert) error {
	var v [8]byte
	element := v[:c.To.Size()]
	num := kernel.F32
	switch c.To {
	case dtype.Uint8:
		num = kernel.U8
	case dtype.Float16:
		num = kernel.F16
	case dtype.BFloat16:
		num = kernel.BF16
	case dtype.Int64:
		num = kernel.I64
	}
	bits := uint64(0)
	if num.IsFloat() {
		bits = kernel.FloatBits(num, c.Fill)
	} else if b, ok := kernel.IntBits(num, c.Fill); ok {
		bits = b
	} else {
		return fmt.Errorf("fill value %v does not fit %v", c.Fill, c.To)
	}
	binary.LittleEndian.PutUint64(v[:], bits)
	for i, ok := range c.Mask {
		if ok == 0 {
			copy(out[i*len(element):], element)
		}
	}
	return nil
}

// orNil returns nil for an empty slice, because nil means no factor in package einops.
func orNil(v []float32) []float32 {
	if len(v) == 0 {
		return nil
	}
	return v
}

// widens reports whether every sample of a type is an int64.
func widens(d dtype.Type) bool {
	switch d {
	case dtype.Uint8, dtype.Uint16, dtype.Uint32, dtype.Int8, dtype.Int16, dtype.Int32:
		return true
	}
	return false
}

// targets are the dtypes that arithmetic may lead to.
var targets = []dtype.Type{dtype.Uint8, dtype.Float16, dtype.BFloat16, dtype.Float32, dtype.Int64}

// checkSizes says what in c contradicts tensor t, whose mask has so many bytes if it is masked, or nothing. The caller
// has compared the data of a dense tensor with its shape.
func checkSizes(t *batch.Tensor, c *batch.Convert, mask uint64, masked bool) string {
	elems, ok := elements(t.Shape)
	bands := int64(1)
	switch {
	case t.Kind != batch.Dense || !ok:
		return "arithmetic for a tensor that is not dense"
	case t.DType.Components() != 1:
		return fmt.Sprintf("arithmetic for %v", t.DType)
	case !slices.Contains(targets, c.To):
		return fmt.Sprintf("arithmetic to dtype %d", uint8(c.To))
	case c.To == dtype.Int64 && (len(c.Scale)+len(c.Offset) > 0 || c.Clip || !widens(t.DType)):
		return fmt.Sprintf("%v to int64: only integers become that, and without arithmetic", t.DType)
	case c.BandAxis < -1 || c.BandAxis >= len(t.Shape):
		return fmt.Sprintf("band axis %d of %d", c.BandAxis, len(t.Shape))
	case c.Clip && !(c.Lo <= c.Hi):
		return fmt.Sprintf("clip to [%v, %v]", c.Lo, c.Hi)
	case masked && mask != elems:
		return fmt.Sprintf("mask of %d bytes for %d elements", mask, elems)
	}
	if c.BandAxis >= 0 {
		bands = t.Shape[c.BandAxis]
	}
	for _, v := range [][]float32{c.Scale, c.Offset} {
		if n := int64(len(v)); n > 1 && n != bands {
			return fmt.Sprintf("%d scales or offsets for %d bands", n, bands)
		}
	}
	return ""
}
