package kernel

import (
	"github.com/chaski-eo/chaski/internal/cast"
)

// Affine replaces every v of f by float32(v*a) + c, each step rounded to float32.
func Affine(f []float32, a, c float32) {
	k := affineF32SIMD(f, a, c)
	affineF32(f[k:], a, c)
}

// LoadAffine is Load, then Affine.
func LoadAffine(dst []float32, src []byte, t Num, stride int, a, c float32) {
	if stride == 1 && len(dst) > 0 {
		switch t {
		case U8:
			k := affineU8SIMD(dst, src, a, c)
			affineInt(dst[k:], src[k:], a, c)
			return
		case U16:
			k := affineU16SIMD(dst, src, a, c)
			if s, ok := cast.Of[uint16](src); ok {
				affineInt(dst[k:], s[k:], a, c)
			} else {
				affine16Bytes[uint16](dst[k:], src[2*k:], a, c)
			}
			return
		case I16:
			k := affineI16SIMD(dst, src, a, c)
			if s, ok := cast.Of[int16](src); ok {
				affineInt(dst[k:], s[k:], a, c)
			} else {
				affine16Bytes[int16](dst[k:], src[2*k:], a, c)
			}
			return
		}
	}
	Load(dst, src, t, stride)
	Affine(dst, a, c)
}

// StreamAffine is LoadAffine with stride 1 for a dst that is written once, completely, and not read for a
// while. It writes past the caches where it can, which saves reading the lines that are overwritten.
// Call StreamEnd before another goroutine or process reads dst.
func StreamAffine(dst []float32, src []byte, t Num, a, c float32) {
	if t != U8 && t != U16 && t != I16 {
		LoadAffine(dst, src, t, 1, a, c)
		return
	}
	// Streamed stores need to fill whole lines of 64 bytes, otherwise each costs a read.
	k := cast.ToLine(dst)
	LoadAffine(dst[:k], src, t, 1, a, c)
	if k < len(dst) {
		k += streamSIMD(dst[k:], src[k*t.Size():], t, a, c)
		LoadAffine(dst[k:], src[k*t.Size():], t, 1, a, c)
	}
}

// StreamEnd orders the writes of StreamAffine before all later writes.
func StreamEnd() { storeFence() }

// The conversion around the product keeps the compiler from fusing it with the addition (Go
// specification, "Floating-point operators").

func affineF32(f []float32, a, c float32) {
	for i, v := range f {
		f[i] = float32(v*a) + c
	}
}

func affineInt[T uint8 | uint16 | int16](dst []float32, src []T, a, c float32) {
	src = src[:len(dst)]
	for i, v := range src {
		dst[i] = float32(float32(int32(v))*a) + c
	}
}

func affine16Bytes[T uint16 | int16](dst []float32, src []byte, a, c float32) {
	for i := range dst {
		dst[i] = float32(float32(int32(T(le.Uint16(src[2*i:]))))*a) + c
	}
}

// Clip limits every number of f to [lo, hi]; a NaN stays. lo <= hi, and neither is a NaN.
func Clip(f []float32, lo, hi float32) {
	clip(f[clipSIMD(f, lo, hi):], lo, hi)
}

func clip(f []float32, lo, hi float32) {
	for i, v := range f {
		if v < lo {
			v = lo
		}
		if v > hi {
			v = hi
		}
		f[i] = v
	}
}
