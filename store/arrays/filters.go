package arrays

import (
	"math"
	"math/bits"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/cast"
)

// load returns the bits of value i.
func (n numberType) load(b []byte, i int) uint64 {
	size := n.t.Size()
	value := n.order(cast.Uint(b[i*size:], size))
	if n.t >= chunk.Int8 && n.t <= chunk.Int64 {
		shift := 64 - 8*size
		value = uint64(int64(value<<shift) >> shift)
	}
	return value
}

// store sets value i to the low bits of v.
func (n numberType) store(b []byte, i int, v uint64) {
	size := n.t.Size()
	cast.PutUint(b[i*size:], size, n.order(v))
}

// order turns the bytes of a value around if the type is big-endian.
func (n numberType) order(v uint64) uint64 {
	if n.big {
		return bits.ReverseBytes64(v) >> (64 - 8*n.t.Size())
	}
	return v
}

// undelta adds up differences.
func undelta(_ *chunkDecoder, dst, src []byte, s *decodeStep) error {
	count := len(dst) / s.to.t.Size()
	switch s.to.t {
	case chunk.Float32:
		sum := float32(0)
		for i := range count {
			value := math.Float32frombits(uint32(s.from.load(src, i)))
			if sum += value; i == 0 {
				// The first value needs to be taken as it is, because 0 + -0 would be 0.
				sum = value
			}
			s.to.store(dst, i, uint64(math.Float32bits(sum)))
		}
	case chunk.Float64:
		sum := 0.0
		for i := range count {
			value := math.Float64frombits(s.from.load(src, i))
			if sum += value; i == 0 {
				sum = value
			}
			s.to.store(dst, i, math.Float64bits(sum))
		}
	default:
		sum := uint64(0)
		for i := range count {
			sum += s.from.load(src, i)
			s.to.store(dst, i, sum)
		}
	}
	return nil
}

// unscale divides whole numbers by the scale and adds the offset, in float64 as numpy does.
func unscale(_ *chunkDecoder, dst, src []byte, s *decodeStep) error {
	count := len(dst) / s.to.t.Size()
	signed := s.from.t >= chunk.Int8 && s.from.t <= chunk.Int64
	for i := range count {
		stored := s.from.load(src, i)
		number := float64(stored)
		if signed {
			number = float64(int64(stored))
		}
		number = float64(number/s.scale) + s.shift
		if s.to.t == chunk.Float32 {
			s.to.store(dst, i, uint64(math.Float32bits(float32(number))))
		} else {
			s.to.store(dst, i, math.Float64bits(number))
		}
	}
	return nil
}
