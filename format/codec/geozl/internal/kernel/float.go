package kernel

import (
	"math"

	"github.com/chaski-eo/chaski/internal/cast"
)

// LowBits joins the lower count bits of floats of width bytes with their upper bits. Both are bits of keys in the
// order of the floats; the lower bits of negative floats are flipped. It reports whether no lower part has more than
// count bits. All have one length.
func LowBits(dst, high, low []byte, width int, count uint) bool {
	allOnes, sign := uint64(1)<<count-1, uint64(1)<<(8*width-1)
	var extra uint64
	for i := 0; i < len(dst); i += width {
		upper, lower := cast.Uint(high[i:], width), cast.Uint(low[i:], width)
		extra |= lower >> count
		if upper < sign>>count {
			lower = allOnes - lower
		}
		cast.PutUint(dst[i:], width, unordered(upper<<count+lower, sign))
	}
	return extra == 0
}

// ordered maps the bits of a float to a key; keys have the order of the floats.
func ordered[T uint32 | uint64](b, sign T) T {
	if b&sign != 0 {
		return ^b
	}
	return b ^ sign
}

// unordered undoes ordered.
func unordered[T uint32 | uint64](key, sign T) T {
	if key&sign != 0 {
		return key ^ sign
	}
	return ^key
}

// Multiples32 multiplies whole numbers by base and moves the products by adjust floats. mult counts whole
// numbers in the order of the floats. All slices have equal lengths.
func Multiples32(dst, mult, adjust []uint32, base float32) {
	const sign = 1 << 31
	for i, ordinal := range mult {
		product := math.Float32bits(math.Float32frombits(whole32(ordinal)) * base)
		dst[i] = unordered(ordered(product, sign)+adjust[i]-sign, sign)
	}
}

// Multiples64 is Multiples32 for wider floats.
func Multiples64(dst, mult, adjust []uint64, base float64) {
	const sign = 1 << 63
	for i, ordinal := range mult {
		product := math.Float64bits(math.Float64frombits(whole64(ordinal)) * base)
		dst[i] = unordered(ordered(product, sign)+adjust[i]-sign, sign)
	}
}

// whole32 returns the bits of the whole float with this ordinal, in the order of the floats: 1<<31 is 0, and one less
// is -0.
func whole32(ordinal uint32) uint32 {
	const zero, dense = 1 << 31, 1 << 24 // below dense every whole number is a float
	sign, magnitude := uint32(0), ordinal-zero
	if ordinal < zero {
		sign, magnitude = 1<<31, zero-1-ordinal
	}
	if magnitude < dense {
		return sign | math.Float32bits(float32(magnitude))
	}
	// From dense on all floats are whole. The sign is flipped, not set, so NaNs come out as in the
	// original.
	return sign ^ (math.Float32bits(dense) + magnitude - dense)
}

// whole64 is whole32 for wider floats.
func whole64(ordinal uint64) uint64 {
	const zero, dense = 1 << 63, 1 << 53
	sign, magnitude := uint64(0), ordinal-zero
	if ordinal < zero {
		sign, magnitude = 1<<63, zero-1-ordinal
	}
	if magnitude < dense {
		return sign | math.Float64bits(float64(magnitude))
	}
	return sign ^ (math.Float64bits(dense) + magnitude - dense)
}
