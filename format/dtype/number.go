package dtype

import (
	"encoding/binary"
	"math"

	"github.com/chaski-eo/chaski/internal/kernel"
)

// Number returns a little-endian sample of a type with one component as a number. Integers beyond 2^53 are rounded. Of
// a type with less than 8 bits it returns the byte.
func (d Type) Number(sample []byte) float64 {
	le := binary.LittleEndian
	switch d {
	case Int8:
		return float64(int8(sample[0]))
	case Uint16:
		return float64(le.Uint16(sample))
	case Int16:
		return float64(int16(le.Uint16(sample)))
	case Uint32:
		return float64(le.Uint32(sample))
	case Int32:
		return float64(int32(le.Uint32(sample)))
	case Uint64:
		return float64(le.Uint64(sample))
	case Int64:
		return float64(int64(le.Uint64(sample)))
	case Float16:
		return float64(kernel.Float32FromFloat16(le.Uint16(sample)))
	case BFloat16:
		return float64(kernel.Float32FromBFloat16(le.Uint16(sample)))
	case Float32:
		return float64(math.Float32frombits(le.Uint32(sample)))
	case Float64:
		return math.Float64frombits(le.Uint64(sample))
	}
	return float64(sample[0])
}

// NoData returns a sample as Index.NoData and Index.NoDataBits have it.
func (d Type) NoData(sample []byte) (*float64, *uint64) {
	number := d.Number(sample)
	if d != Int64 && d != Uint64 {
		return &number, nil
	}
	bits := binary.LittleEndian.Uint64(sample)
	return &number, &bits
}

var nums = map[Type]kernel.Num{
	Uint8: kernel.U8, Uint16: kernel.U16, Uint32: kernel.U32, Uint64: kernel.U64,
	Int8: kernel.I8, Int16: kernel.I16, Int32: kernel.I32, Int64: kernel.I64,
	Float16: kernel.F16, BFloat16: kernel.BF16, Float32: kernel.F32, Float64: kernel.F64,
}

// Num returns the type of the numbers that samples are, or kernel.None where they are complex.
func (d Type) Num() kernel.Num { return nums[d] }

// PutNumber sets a little-endian sample to a number: an integer to the nearest value of its type, with halves rounded
// away from 0, and to 0 for NaN. The imaginary component of a complex sample is 0.
func (d Type) PutNumber(sample []byte, value float64) {
	clear(sample)
	var s [8]byte
	switch size := d.Size(); d {
	case Float16, ComplexFloat16:
		binary.LittleEndian.PutUint16(s[:], kernel.Float16FromFloat32(float32(value)))
	case BFloat16:
		binary.LittleEndian.PutUint16(s[:], kernel.BFloat16FromFloat32(float32(value)))
	case Float32, Complex64:
		binary.LittleEndian.PutUint32(s[:], math.Float32bits(float32(value)))
	case Float64, Complex128:
		if value != value {
			// Go's NaN has other bits than NaN in numpy and GDAL: checksums would differ.
			value = math.Float64frombits(0x7ff8 << 48)
		}
		binary.LittleEndian.PutUint64(s[:], math.Float64bits(value))
	case Uint8, Uint16, Uint32, Uint64:
		binary.LittleEndian.PutUint64(s[:], nearestUint(value, 8*size))
	case ComplexInt16:
		binary.LittleEndian.PutUint16(s[:], uint16(nearestInt(value, 16)))
	case ComplexInt32:
		binary.LittleEndian.PutUint32(s[:], uint32(nearestInt(value, 32)))
	case Int8, Int16, Int32, Int64:
		binary.LittleEndian.PutUint64(s[:], uint64(nearestInt(value, 8*size)))
	default:
		binary.LittleEndian.PutUint64(s[:], uint64(nearestInt(value, 64)))
	}
	copy(sample, s[:])
}

// nearestUint returns the unsigned integer of that many bits that is nearest to v, with halves rounded
// away from 0, and 0 for NaN. GDAL converts a nodata value in the same way.
func nearestUint(v float64, bits int) uint64 {
	switch v = math.Round(v); {
	case !(v > 0):
		return 0
	case v >= math.Ldexp(1, bits):
		return math.MaxUint64 >> (64 - bits)
	}
	return uint64(v)
}

// nearestInt is nearestUint for signed integers.
func nearestInt(v float64, bits int) int64 {
	limit := math.Ldexp(1, bits-1)
	switch v = math.Round(v); {
	case v != v:
		return 0
	case v >= limit:
		return math.MaxInt64 >> (64 - bits)
	case v < -limit:
		return math.MinInt64 >> (64 - bits)
	}
	return int64(v)
}
