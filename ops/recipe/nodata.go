package recipe

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/ops/convert"
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
	index, ok := noDataAs(nodata, c.DType)
	if !ok {
		return 0, fault.New(fault.Unsupported, "field "+f.Name, fault.NoOffset, "its bands miss different pixels, "+
			"which a mask cannot say, and %s cannot hold the source's nodata value %q: the field's nodata gives one",
			c.DType, nodata)
	}
	c.NoData, c.Mask = nodata, nil
	sample := sampleOf(index)
	fillMissing(c.Pixels, valid, sample)
	return avoid(c.Pixels, valid, sample, c.DType), nil
}

// noDataAs returns an index with a nodata value of type d. It reports false if samples of d cannot have the value.
func noDataAs(nodata string, d chunk.DType) (x *chunk.Index, ok bool) {
	x = &chunk.Index{DType: d}
	switch d { // float64 would round integers beyond 2^53
	case chunk.Int64:
		if n, err := strconv.ParseInt(nodata, 10, 64); err == nil {
			bits := uint64(n)
			x.NoDataBits = &bits
			return x, true
		}
	case chunk.Uint64:
		if bits, err := strconv.ParseUint(nodata, 10, 64); err == nil {
			x.NoDataBits = &bits
			return x, true
		}
	}
	v, err := strconv.ParseFloat(nodata, 64)
	x.NoData = &v
	return x, err == nil && fits(v, d)
}

// fits reports whether a sample of type d can have the value v.
func fits(v float64, d chunk.DType) bool {
	bits := 8 * d.Size()
	switch d {
	case chunk.Uint8, chunk.Uint16, chunk.Uint32, chunk.Uint64:
		return v == math.Trunc(v) && v >= 0 && v < math.Ldexp(1, bits)
	case chunk.Int8, chunk.Int16, chunk.Int32, chunk.Int64:
		return v == math.Trunc(v) && v >= -math.Ldexp(1, bits-1) && v < math.Ldexp(1, bits-1)
	case chunk.Float16:
		return math.IsNaN(v) || math.IsInf(v, 0) || math.Abs(v) <= 65504
	case chunk.Float32:
		// Many files have -3.4028235e+38, which rounds to the lowest float32.
		return math.IsInf(v, 0) || !math.IsInf(float64(float32(v)), 0)
	case chunk.Float64:
		return true
	}
	return false
}

// avoid moves valid samples that have the nodata value to the next value, as GDAL's warper does: down, but up from the
// least value of the type. It returns how many it moved. A valid NaN where nodata is NaN has no next value: it becomes
// missing.
func avoid(pixels, valid, sample []byte, d chunk.DType) (moved int64) {
	next, zero, nan, ok := neighbour(sample, d)
	if !ok {
		return 0
	}
	n := len(sample)
	for i, v := range valid {
		p := pixels[i*n : (i+1)*n]
		switch {
		case v == 0:
		case nan:
			if isNaN(p, d) {
				valid[i] = 0
			}
		case bytes.Equal(p, sample) || zero && magnitude(p) == 0:
			copy(p, next)
			moved++
		}
	}
	return moved
}

// neighbour returns the value beside a sample. zero is said of a float that is 0, which -0 equals, and nan of a NaN,
// which has no neighbour. It reports false for types that have no nodata value of their own.
func neighbour(sample []byte, d chunk.DType) (next []byte, zero, nan, ok bool) {
	bits := word(sample)
	sign := uint64(1) << (8*len(sample) - 1)
	switch d {
	case chunk.Uint8, chunk.Uint16, chunk.Uint32, chunk.Uint64:
		if bits == 0 {
			bits++
		} else {
			bits--
		}
	case chunk.Int8, chunk.Int16, chunk.Int32, chunk.Int64:
		if bits == sign {
			bits++
		} else {
			bits--
		}
	case chunk.Float16, chunk.Float32, chunk.Float64, chunk.BFloat16:
		switch lowest := sign | infinity(d) - 1; {
		case isNaN(sample, d):
			nan = true
		case bits&^sign == 0:
			bits, zero = sign|1, true
		case bits&sign == 0 || bits >= lowest: // the lowest value and -Inf go up
			bits--
		default:
			bits++
		}
	default:
		return nil, false, false, false
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], bits)
	return b[:len(sample)], zero, nan, true
}

// word returns a sample of at most 8 bytes as a number.
func word(sample []byte) uint64 {
	var b [8]byte
	copy(b[:], sample)
	return binary.LittleEndian.Uint64(b[:])
}

// magnitude returns the bits of a float without its sign.
func magnitude(sample []byte) uint64 {
	return word(sample) &^ (1 << (8*len(sample) - 1))
}

// isNaN reports whether a sample of a type of floats is NaN.
func isNaN(sample []byte, d chunk.DType) bool { return magnitude(sample) > infinity(d) }

// infinity returns the bits of a type's infinity.
func infinity(d chunk.DType) uint64 {
	switch d {
	case chunk.Float16:
		return 0x7c00
	case chunk.BFloat16:
		return 0x7f80
	case chunk.Float32:
		return 0x7f800000
	}
	return 0x7ff << 52
}
