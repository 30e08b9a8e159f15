package kernel

import (
	"math"

	"github.com/chaski-eo/chaski/internal/cast"
)

// LowBits joins the lower k bits of floats of width bytes with their upper bits. Both are bits of keys in the order of
// the floats; the lower bits of negative floats are flipped. It reports whether no lower part has more than k bits. All
// have one length.
func LowBits(dst, high, low []byte, width int, k uint) bool {
	allOnes, sign := uint64(1)<<k-1, uint64(1)<<(8*width-1)
	var extra uint64
	for i := 0; i < len(dst); i += width {
		h, l := cast.Uint(high[i:], width), cast.Uint(low[i:], width)
		extra |= l >> k
		if h < sign>>k {
			l = allOnes - l
		}
		cast.PutUint(dst[i:], width, unordered(h<<k+l, sign))
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
	for i, m := range mult {
		product := math.Float32bits(math.Float32frombits(whole32(m)) * base)
		dst[i] = unordered(ordered(product, sign)+adjust[i]-sign, sign)
	}
}

// Multiples64 is Multiples32 for wider floats.
func Multiples64(dst, mult, adjust []uint64, base float64) {
	const sign = 1 << 63
	for i, m := range mult {
		product := math.Float64bits(math.Float64frombits(whole64(m)) * base)
		dst[i] = unordered(ordered(product, sign)+adjust[i]-sign, sign)
	}
}

// whole32 returns the bits of the float that is the n-th whole one, 1<<31 being 0 and one less -0.
func whole32(n uint32) uint32 {
	const zero, dense = 1 << 31, 1 << 24 // below dense every whole number is a float
	sign, m := uint32(0), n-zero
	if n < zero {
		sign, m = 1<<31, zero-1-n
	}
	if m < dense {
		return sign | math.Float32bits(float32(m))
	}
	// From dense on all floats are whole. The sign is flipped, not set, so that NaNs come out as in the
	// original.
	return sign ^ (math.Float32bits(dense) + m - dense)
}

// whole64 is whole32 for wider floats.
func whole64(n uint64) uint64 {
	const zero, dense = 1 << 63, 1 << 53
	sign, m := uint64(0), n-zero
	if n < zero {
		sign, m = 1<<63, zero-1-n
	}
	if m < dense {
		return sign | math.Float64bits(float64(m))
	}
	return sign ^ (math.Float64bits(dense) + m - dense)
}
