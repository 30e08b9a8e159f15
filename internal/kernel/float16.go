package kernel

import "math"

// Float16FromFloat32 rounds to the nearest IEEE 754 binary16, ties to even. A NaN keeps its
// sign and top payload bits and becomes quiet (IEEE 754-2019 section 6.2).
func Float16FromFloat32(f float32) uint16 {
	word := math.Float32bits(f)
	sign := uint16(word>>16) & 0x8000
	abs := word & 0x7fffffff
	switch {
	case abs > 0x7f800000: // NaN
		return sign | 0x7e00 | uint16(abs>>13)&0x3ff
	case abs >= 0x477ff000: // rounds to 65536 or more: infinity
		return sign | 0x7c00
	case abs >= 0x38800000: // normal; adding just under half a unit, and the last bit, rounds to even
		abs -= 112 << 23
		return sign | uint16((abs+0xfff+(abs>>13&1))>>13)
	case abs < 0x33000000: // below half of the smallest subnormal
		return sign
	}
	// Subnormal: the mantissa with its hidden bit, shifted to units of 2^-24.
	shift := 126 - abs>>23
	mantissa := abs&0x7fffff | 0x800000
	half := uint32(1)<<(shift-1) - 1
	return sign | uint16((mantissa+half+(mantissa>>shift&1))>>shift)
}

// Float32FromFloat16 is exact; a NaN becomes quiet.
func Float32FromFloat16(h uint16) float32 {
	sign, exponent, mantissa := uint32(h&0x8000)<<16, uint32(h>>10)&0x1f, uint32(h)&0x3ff
	switch {
	case exponent == 0x1f && mantissa != 0:
		return math.Float32frombits(sign | 0x7fc00000 | mantissa<<13)
	case exponent == 0x1f:
		return math.Float32frombits(sign | 0x7f800000)
	case exponent != 0:
		return math.Float32frombits(sign | (exponent+112)<<23 | mantissa<<13)
	}
	// Subnormal: mantissa units of 2^-24, exact in float32.
	value := float32(mantissa) * (1.0 / (1 << 24))
	return math.Float32frombits(sign | math.Float32bits(value))
}

// BFloat16FromFloat32 rounds to the nearest bfloat16, ties to even; a NaN becomes the quiet NaN of
// its sign.
func BFloat16FromFloat32(f float32) uint16 {
	word := math.Float32bits(f)
	if word&0x7fffffff > 0x7f800000 {
		return uint16(word>>16)&0x8000 | 0x7fc0
	}
	return uint16((word + 0x7fff + (word >> 16 & 1)) >> 16)
}

// Float32FromBFloat16 is exact.
func Float32FromBFloat16(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }
