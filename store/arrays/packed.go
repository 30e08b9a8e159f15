package arrays

import (
	"encoding/binary"
	"math"

	"github.com/chaski-eo/chaski/internal/cast"
)

// Filters of HDF5 that store values in fewer bits: scaleoffset and nbit. Both write the bits of one value behind those
// of another, the highest first.

// Numbers among the parameters of scaleoffset (H5Zscaleoffset.c) and nbit (H5Znbit.c), by their places.
const (
	offsetMethod = 0 // 0 scales floats by powers of ten, 2 is for integers
	offsetDigits = 1
	offsetClass  = 3 // 0 for integers, 1 for floats
	offsetSize   = 4
	offsetBig    = 6
	offsetFills  = 7 // 1: a fill value follows, which has all bits
	offsetValues = 8

	nbitWhole = 1 // 1: nothing was done
	nbitClass = 3 // 1 for numbers
	nbitSize  = 4
	nbitBig   = 5
	nbitBits  = 6
	nbitShift = 7

	// offsetHead is the header of a chunk of scaleoffset: the bits of a value, the bytes of the least one, this, and
	// what is not used.
	offsetHead  = 21
	offsetLeast = 5
)

// bitReader reads numbers of bits, the highest first.
type bitReader struct {
	src  []byte
	bits uint64 // at the low end
	n    int
}

// next returns a number of up to 56 bits. The caller has checked that there are so many.
func (r *bitReader) next(width int) uint64 {
	for r.n < width {
		r.bits, r.src, r.n = r.bits<<8|uint64(r.src[0]), r.src[1:], r.n+8
	}
	r.n -= width
	return r.bits >> r.n & (1<<width - 1)
}

// wide returns a number of up to 64 bits.
func (r *bitReader) wide(width int) uint64 {
	if high := width - 32; high > 0 {
		return r.next(high)<<32 | r.next(32)
	}
	return r.next(width)
}

// configurePacked reads the parameters of scaleoffset or nbit.
func (c *chain) configurePacked(s *decodeStep, conf Object) error {
	if err := conf.Need("values", &s.values); err != nil {
		return err
	}
	return nil
}

// packedParameter returns a parameter, or 0.
func (s *decodeStep) packedParameter(i int) int {
	if i >= len(s.values) {
		return 0
	}
	return int(s.values[i])
}

func unscaleOffset(_ *chunkDecoder, dst, src []byte, s *decodeStep) error {
	size, float := s.packedParameter(offsetSize), s.packedParameter(offsetClass) == 1
	known := size == 1 || size == 2 || size == 4 || size == 8
	wrongFloat := float && (size < 4 || s.packedParameter(offsetMethod) != 0)
	if !known || len(dst)%size != 0 || wrongFloat {
		return Unsupported("codec %q of values of %d bytes by method %d", s.name, size, s.packedParameter(offsetMethod))
	}
	if len(src) < offsetHead {
		return broken("", "%d bytes, the header has %d", len(src), offsetHead)
	}
	width, count := int(binary.LittleEndian.Uint32(src)), len(dst)/size
	if least := src[4]; width > 8*size || least != 8 {
		return broken("", "%d bits of values of %d bytes, and a least one of %d bytes", width, size, least)
	}
	least := binary.LittleEndian.Uint64(src[offsetLeast:])
	body := src[offsetHead:]
	if width == 8*size {
		if len(body) < len(dst) {
			return broken("", "%d bytes, %d needed", len(body), len(dst))
		}
		copy(dst, body)
		return nil
	}
	if (count*width+7)/8 > len(body) {
		return broken("", "%d bytes, %d values of %d bits need more", len(body), count, width)
	}
	fill, fills := uint64(0), s.packedParameter(offsetFills) == 1
	for i := range min((size+3)/4, max(len(s.values)-offsetValues, 0)) {
		fill |= uint64(s.values[offsetValues+i]) << (32 * i)
	}
	digits := int32(s.packedParameter(offsetDigits))
	r := bitReader{src: body}
	for i := range count {
		value := r.wide(width)
		switch {
		case fills && width > 0 && value == 1<<width-1:
			value = fill
		case !float:
			value += least
		case size == 4:
			scaled := float32(int32(value)) / float32(math.Pow(10, float64(digits)))
			value = uint64(math.Float32bits(scaled + math.Float32frombits(uint32(least))))
		default:
			value = math.Float64bits(float64(int64(value))/math.Pow(10, float64(digits)) + math.Float64frombits(least))
		}
		putPacked(dst[i*size:(i+1)*size], value, s.packedParameter(offsetBig) == 1)
	}
	return nil
}

func unNBit(_ *chunkDecoder, dst, src []byte, s *decodeStep) error {
	size, width, shift := s.packedParameter(nbitSize), s.packedParameter(nbitBits), s.packedParameter(nbitShift)
	if s.packedParameter(nbitWhole) == 1 {
		if len(src) != len(dst) {
			return badSize(s.name, len(src), len(dst))
		}
		copy(dst, src)
		return nil
	}
	isSize := size >= 1 && size <= 8
	isPart := width >= 1 && shift >= 0 && shift <= 8*size-width
	if s.packedParameter(nbitClass) != 1 || !isSize || len(dst)%size != 0 || !isPart {
		return Unsupported("codec %q of other values than numbers", s.name)
	}
	count := len(dst) / size
	if (count*width+7)/8 > len(src) {
		return broken("", "%d bytes, %d values of %d bits need more", len(src), count, width)
	}
	r := bitReader{src: src}
	for i := range count {
		putPacked(dst[i*size:(i+1)*size], r.wide(width)<<shift, s.packedParameter(nbitBig) == 1)
	}
	return nil
}

// putPacked writes the low bytes of a value.
func putPacked(dst []byte, value uint64, big bool) {
	cast.PutUint(dst, len(dst), value)
	if big {
		for i, j := 0, len(dst)-1; i < j; i, j = i+1, j-1 {
			dst[i], dst[j] = dst[j], dst[i]
		}
	}
}
