package chunk

import (
	"encoding/binary"
	"math"

	"github.com/chaski-eo/chaski/internal/kernel"
)

// Number returns a little-endian sample of a type with one component as a number. Integers beyond 2^53 are rounded. Of
// a type with less than 8 bits it returns the byte.
func (d DType) Number(sample []byte) float64 {
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
func (d DType) NoData(sample []byte) (*float64, *uint64) {
	number := d.Number(sample)
	if d != Int64 && d != Uint64 {
		return &number, nil
	}
	bits := binary.LittleEndian.Uint64(sample)
	return &number, &bits
}

var nums = map[DType]kernel.Num{
	Uint8: kernel.U8, Uint16: kernel.U16, Uint32: kernel.U32, Uint64: kernel.U64,
	Int8: kernel.I8, Int16: kernel.I16, Int32: kernel.I32, Int64: kernel.I64,
	Float16: kernel.F16, BFloat16: kernel.BF16, Float32: kernel.F32, Float64: kernel.F64,
}

// Num returns the type of the numbers that samples are, or kernel.None where they are complex.
func (d DType) Num() kernel.Num { return nums[d] }
