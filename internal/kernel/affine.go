package kernel

import "github.com/chaski-eo/chaski/internal/cast"

// Affine replaces every v of f by float32(v*a) + c, each step rounded to float32.
func Affine(f []float32, a, c float32) {
	done := affineF32SIMD(f, a, c)
	affineF32(f[done:], a, c)
}

// LoadAffine is Load, then Affine.
func LoadAffine(dst []float32, src []byte, t Num, stride int, a, c float32) {
	if stride == 1 && (t == U8 || t == U16 || t == I16) {
		done := affineSIMD(dst, src, t, a, c)
		dst, src = dst[done:], src[done*t.Size():]
		switch t {
		case U8:
			affineInt(dst, src, a, c)
		case U16:
			affineNumbers[uint16](dst, src, a, c)
		case I16:
			affineNumbers[int16](dst, src, a, c)
		}
		return
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
	done := cast.ToLine(dst)
	LoadAffine(dst[:done], src, t, 1, a, c)
	if done < len(dst) {
		done += streamSIMD(dst[done:], src[done*t.Size():], t, a, c)
		LoadAffine(dst[done:], src[done*t.Size():], t, 1, a, c)
	}
}

// StreamEnd orders the writes of StreamAffine before all later writes.
func StreamEnd() { storeFence() }

// The conversion around the product keeps the compiler from fusing it with the addition (Go
// specification, "Floating-point operators").

func affineF32(f []float32, a, c float32) {
	for i, value := range f {
		f[i] = float32(value*a) + c
	}
}

func affineInt[T uint8 | uint16 | int16](dst []float32, src []T, a, c float32) {
	src = src[:len(dst)]
	for i, value := range src {
		dst[i] = float32(float32(int32(value))*a) + c
	}
}

func affineNumbers[T uint16 | int16](dst []float32, src []byte, a, c float32) {
	if numbers, ok := cast.Of[T](src); ok {
		affineInt(dst, numbers, a, c)
		return
	}
	affineBytes[T](dst, src, a, c)
}

func affineBytes[T uint16 | int16](dst []float32, src []byte, a, c float32) {
	for i := range dst {
		dst[i] = float32(float32(int32(T(le.Uint16(src[2*i:]))))*a) + c
	}
}

// Clip limits every number of f to [lo, hi]; a NaN stays. lo <= hi, and neither is a NaN.
func Clip(f []float32, lo, hi float32) {
	clip(f[clipSIMD(f, lo, hi):], lo, hi)
}

func clip(f []float32, lo, hi float32) {
	for i, value := range f {
		if value < lo {
			value = lo
		}
		if value > hi {
			value = hi
		}
		f[i] = value
	}
}
