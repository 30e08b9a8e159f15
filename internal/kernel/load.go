package kernel

import (
	"encoding/binary"
	"math"

	"github.com/chaski-eo/chaski/internal/cast"
)

var le = binary.LittleEndian

// Load fills dst with numbers of src, converted to float32 to the nearest even: dst[i] is the number
// at i*stride. src must hold them all.
func Load(dst []float32, src []byte, t Num, stride int) {
	switch t {
	case U8:
		load(dst, src, stride)
	case I8:
		loadNumbers[int8](dst, src, stride)
	case U16:
		loadNumbers[uint16](dst, src, stride)
	case I16:
		loadNumbers[int16](dst, src, stride)
	case U32:
		loadNumbers[uint32](dst, src, stride)
	case I32:
		loadNumbers[int32](dst, src, stride)
	case U64:
		loadNumbers[uint64](dst, src, stride)
	case I64:
		loadNumbers[int64](dst, src, stride)
	case F16:
		if stride == 1 {
			done := loadF16SIMD(dst, src)
			dst, src = dst[done:], src[2*done:]
		}
		loadFloat16(dst, src, stride)
	case BF16:
		for i := range dst {
			dst[i] = Float32FromBFloat16(le.Uint16(src[i*stride*2:]))
		}
	case F32:
		if numbers, ok := cast.Of[float32](src); ok {
			load(dst, numbers, stride)
			return
		}
		for i := range dst {
			dst[i] = math.Float32frombits(le.Uint32(src[i*stride*4:]))
		}
	case F64:
		for i := range dst {
			dst[i] = float32(math.Float64frombits(le.Uint64(src[i*stride*8:])))
		}
	}
}

// LoadOdd is Load for float64, rounded to odd: rounding the result to nearest even, in a type of at
// most 22 bits of precision, gives the same as rounding once (S. Boldo and G. Melquiond, "Emulation
// of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008).
func LoadOdd(dst []float32, src []byte, stride int) {
	for i := range dst {
		dst[i] = roundOdd(math.Float64frombits(le.Uint64(src[i*stride*8:])))
	}
}

// roundOdd returns v if it is a float32, else of its two float32 neighbours the one with an odd
// significand. Beyond the largest float32 that is the largest float32.
func roundOdd(v float64) float32 {
	rounded := float32(v)
	wide := float64(rounded)
	bits := math.Float32bits(rounded)
	if wide == v || v != v || bits&1 == 1 {
		return rounded
	}
	// rounded is even and not v, so the neighbour on v's side is odd. Adding 1 to the bits steps away
	// from zero.
	switch {
	case bits&0x7fffffff == 0: // rounded is a zero, v is not
		return math.Float32frombits(uint32(math.Float64bits(v)>>32)&0x80000000 | 1)
	case math.Abs(v) > math.Abs(wide):
		return math.Float32frombits(bits + 1)
	}
	return math.Float32frombits(bits - 1)
}

func load[T real](dst []float32, src []T, stride int) {
	if stride == 1 {
		src = src[:len(dst)]
		for i, value := range src {
			dst[i] = float32(value)
		}
		return
	}
	for i := range dst {
		dst[i] = float32(src[i*stride])
	}
}

func loadNumbers[T int8 | uint16 | int16 | uint32 | int32 | uint64 | int64](dst []float32, src []byte, stride int) {
	if numbers, ok := cast.Of[T](src); ok {
		load(dst, numbers, stride)
		return
	}
	for size, i := binary.Size(T(0)), 0; i < len(dst); i++ {
		dst[i] = float32(T(cast.Uint(src[i*stride*size:], size)))
	}
}

func loadFloat16(dst []float32, src []byte, stride int) {
	for i := range dst {
		dst[i] = Float32FromFloat16(le.Uint16(src[i*stride*2:]))
	}
}
