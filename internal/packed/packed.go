// Package packed undoes the filters of HDF5 that store values in fewer bits: scaleoffset, nbit and szip.
package packed

import (
	"encoding/binary"
	"math"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/kernel"
)

// Numbers among the parameters of scaleoffset (H5Zscaleoffset.c) and nbit (H5Znbit.c), by their places. Both write the
// bits of one value behind those of another, the highest first.
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

// Parameters are the numbers that a file has for a filter.
type Parameters []uint32

// at returns a parameter, or 0.
func (p Parameters) at(i int) int {
	if i >= len(p) {
		return 0
	}
	return int(p[i])
}

func broken(format string, args ...any) error { return fault.New(fault.Corrupt, "", format, args...) }

func unsupported(format string, args ...any) error {
	return fault.New(fault.Unsupported, "", format, args...)
}

// ScaleOffset undoes the filter scaleoffset.
func (p Parameters) ScaleOffset(dst, src []byte) error {
	size, float := p.at(offsetSize), p.at(offsetClass) == 1
	wrongFloat := float && (size < 4 || p.at(offsetMethod) != 0)
	if !cast.IsWidth(size) || len(dst)%size != 0 || wrongFloat {
		return unsupported("values of %d bytes by method %d", size, p.at(offsetMethod))
	}
	if len(src) < offsetHead {
		return broken("%d bytes, the header has %d", len(src), offsetHead)
	}
	width, count := int(binary.LittleEndian.Uint32(src)), len(dst)/size
	if least := src[4]; width > 8*size || least != 8 {
		return broken("%d bits of values of %d bytes, and a least one of %d bytes", width, size, least)
	}
	least := binary.LittleEndian.Uint64(src[offsetLeast:])
	body := src[offsetHead:]
	if (count*width+7)/8 > len(body) {
		return broken("%d bytes, %d values of %d bits need more", len(body), count, width)
	}
	if width == 8*size {
		copy(dst, body)
	} else {
		p.addOffset(dst, body, width, least)
	}
	if p.at(offsetBig) == 1 {
		kernel.SwapBytes(dst, size)
	}
	return nil
}

// addOffset makes little-endian values of what scaleoffset stores of each in width bits: how far it is from the least
// one.
func (p Parameters) addOffset(dst, src []byte, width int, least uint64) {
	size, float := p.at(offsetSize), p.at(offsetClass) == 1
	fill, fills := uint64(0), p.at(offsetFills) == 1
	for i := range min((size+3)/4, max(len(p)-offsetValues, 0)) {
		fill |= uint64(p[offsetValues+i]) << (32 * i)
	}
	scale := math.Pow(10, float64(int32(p.at(offsetDigits))))
	r := bitReader{src: src}
	for i := range len(dst) / size {
		value := r.wide(width)
		switch {
		case fills && width > 0 && value == 1<<width-1:
			value = fill
		case !float:
			value += least
		case size == 4:
			scaled := float32(int32(value)) / float32(scale)
			value = uint64(math.Float32bits(scaled + math.Float32frombits(uint32(least))))
		default:
			value = math.Float64bits(float64(int64(value))/scale + math.Float64frombits(least))
		}
		cast.PutUint(dst[i*size:], size, value)
	}
}

// NBitBytes returns how many bytes the filter nbit makes of some: one more than their bits fill.
func (p Parameters) NBitBytes(n int) (int, error) {
	if p.at(nbitWhole) == 1 {
		return n, nil
	}
	size, width, shift := p.at(nbitSize), p.at(nbitBits), p.at(nbitShift)
	isPart := cast.IsWidth(size) && width >= 1 && shift >= 0 && shift <= 8*size-width
	if p.at(nbitClass) != 1 || !isPart || n < 0 || n%size != 0 {
		return 0, unsupported("nbit of other values than numbers")
	}
	return n/size*width/8 + 1, nil
}

// NBit undoes the filter nbit.
func (p Parameters) NBit(dst, src []byte) error {
	n, err := p.NBitBytes(len(dst))
	switch {
	case err != nil:
		return err
	case n != len(src):
		return broken("%d bytes, %d needed", len(src), n)
	}
	if p.at(nbitWhole) == 1 {
		copy(dst, src)
		return nil
	}
	size, width := p.at(nbitSize), p.at(nbitBits)
	r := bitReader{src: src}
	for i := range len(dst) / size {
		cast.PutUint(dst[i*size:], size, r.wide(width)<<p.at(nbitShift))
	}
	if p.at(nbitBig) == 1 {
		kernel.SwapBytes(dst, size)
	}
	return nil
}
