package kernel

import "math"

// LowBits puts the lower k bits of floats back to their upper ones. Both are of keys that are
// ordered as the floats are; the lower bits of negative floats are flipped. sign is the highest
// bit. It reports whether no lower part has more bits. All have one length.
func LowBits[T uint32 | uint64](dst, high, low []T, k uint, sign T) bool {
	high, low = high[:len(dst)], low[:len(dst)]
	most := T(1)<<k - 1
	var extra T
	for i, h := range high {
		l := low[i]
		extra |= l >> k
		if h < sign>>k {
			l = most - l
		}
		dst[i] = unordered(h<<k+l, sign)
	}
	return extra == 0
}

// ordered returns a key that is ordered as the floats are, from the bits of one.
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

// Multiples32 multiplies whole numbers, counted in the order of floats that are whole, by base and
// moves the products by adjust floats. All have one length.
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
	// Past dense all floats are whole. A NaN's sign flips with the others'.
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
