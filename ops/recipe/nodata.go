package recipe

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/ops/columns"
	"github.com/chaski-eo/chaski/ops/convert"
	"github.com/chaski-eo/chaski/tiff"
)

// sampleOf returns the nodata value of x as one sample, nil if it has none.
func sampleOf(x *chunk.Index) []byte {
	if x.NoData == nil && x.NoDataBits == nil {
		return nil
	}
	sample := make([]byte, x.DType.Size())
	copy(sample, x.NoDataSample()) // which is nil if all its bytes are 0
	return sample
}

// byValue gives a chip whose bands miss different pixels the nodata value of its source, because a mask is the same for
// all bands. It is an error if the source has none, or the chip's dtype cannot hold it.
func byValue(c *convert.Chip, f *Field, nodata string, valid []byte) (moved int64, err error) {
	sample := noDataAs(nodata, c.DType)
	if sample == nil {
		return 0, fault.New(fault.Unsupported, "field "+f.Name, fault.NoOffset, "its bands miss different pixels, "+
			"which a mask cannot say, and %s cannot hold the source's nodata value %q: the field's nodata gives one",
			c.DType, nodata)
	}
	c.NoData, c.Mask = nodata, nil
	fillMissing(c.Pixels, valid, sample)
	return avoid(c.Pixels, valid, sample, c.DType), nil
}

// lose marks missing pixels as valid where a chip of this format cannot say that they are missing, as its readers do.
func lose(c *convert.Chip, format string, valid []byte) {
	if convert.HoldsNoData(format) && (c.Mask == nil || format == convert.TOG) {
		return
	}
	var sample []byte
	if convert.HoldsNoData(format) {
		sample = noDataAs(c.NoData, c.DType)
	}
	size := c.DType.Size()
	for i := range valid {
		if !bytes.Equal(c.Pixels[i*size:(i+1)*size], sample) {
			valid[i] = 1
		}
	}
}

// noDataAs returns a nodata value as a sample of type d, nil if samples of d cannot have it.
func noDataAs(nodata string, d chunk.DType) []byte {
	index := (&tiff.Meta{NoData: nodata}).WithNoData(&chunk.Index{DType: d})
	sample := sampleOf(index)
	numbers := columns.AppendValues(nil, sample, d)
	if len(numbers) == 0 {
		return nil
	}
	want, have := *index.NoData, numbers[0]
	// A value that float32 rounds is one, too, because many files have -3.4028235e+38, the lowest float32.
	rounded := !d.Integer() && !math.IsInf(have, 0) && !math.IsNaN(want)
	if rounded || want == have || math.IsNaN(want) && math.IsNaN(have) {
		return sample
	}
	return nil
}

// avoid moves valid samples that have the nodata value to the next value, as GDAL's warper does: down, but up from the
// least value of the type. It returns how many it moved. A valid NaN where nodata is NaN has no next value: it becomes
// missing.
func avoid(pixels, valid, sample []byte, d chunk.DType) (moved int64) {
	if d.Components() != 1 { // complex types have no nodata value of their own
		return 0
	}
	size, none := len(sample), d.Number(sample)
	isNoData := func(pixel []byte) bool { return bytes.Equal(pixel, sample) }
	if math.IsNaN(none) { // has many bit patterns
		isNoData = func(pixel []byte) bool { return math.IsNaN(d.Number(pixel)) }
	} else if none == 0 && !d.Integer() { // so that -0 counts as well
		isNoData = func(pixel []byte) bool { return d.Number(pixel) == 0 }
	}
	next := beside(sample, d)
	for i, v := range valid {
		pixel := pixels[i*size : (i+1)*size]
		switch {
		case v == 0 || !isNoData(pixel):
		case math.IsNaN(none):
			valid[i] = 0
		default:
			copy(pixel, next)
			moved++
		}
	}
	return moved
}

// beside returns the value one below a sample, or above the least finite one. NaN has none.
func beside(sample []byte, d chunk.DType) []byte {
	var word [8]byte
	copy(word[:], sample)
	bits, sign := binary.LittleEndian.Uint64(word[:]), uint64(1)<<(8*len(sample)-1)
	as := func(bits uint64) []byte { return binary.LittleEndian.AppendUint64(nil, bits)[:len(sample)] }
	if d.Integer() {
		least := sign // of signed types
		if d <= chunk.Uint64 {
			least = 0
		}
		if bits == least {
			return as(bits + 1)
		}
		return as(bits - 1)
	}
	// Floats of one sign are ordered as their bits are, so that the next one differs by 1.
	switch down := as(bits + 1); {
	case bits&^sign == 0: // 0 and -0
		return as(sign | 1)
	case bits < sign:
		return as(bits - 1)
	case math.IsInf(d.Number(down), -1) || math.IsInf(d.Number(sample), -1):
		return as(bits - 1)
	default:
		return down
	}
}
