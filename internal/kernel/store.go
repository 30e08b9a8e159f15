package kernel

import (
	"encoding/binary"
	"math"

	"github.com/chaski-eo/chaski/internal/cast"
)

// Store writes src to dst as numbers of type t (F32, F16, BF16 or U8): number i goes to i*stride.
// Floats are rounded to the nearest even; U8 is rounded to the nearest even and saturates, and NaN
// becomes 0. dst must have room for them all; bytes between them are not touched.
func Store(dst []byte, src []float32, t Num, stride int) {
	if stride == 1 {
		done := storeSIMD(dst, src, t)
		dst, src = dst[done*t.Size():], src[done:]
	}
	switch t {
	case F32:
		if numbers, ok := cast.Of[float32](dst); ok {
			StoreFloat32(numbers, src, stride)
			return
		}
		for i, value := range src {
			le.PutUint32(dst[i*stride*4:], math.Float32bits(value))
		}
	case F16:
		storeFloat16(dst, src, stride)
	case BF16:
		storeBFloat16(dst, src, stride)
	case U8:
		storeUint8(dst, src, stride)
	}
}

func storeFloat16(dst []byte, src []float32, stride int) {
	for i, value := range src {
		le.PutUint16(dst[i*stride*2:], Float16FromFloat32(value))
	}
}

func storeBFloat16(dst []byte, src []float32, stride int) {
	for i, value := range src {
		le.PutUint16(dst[i*stride*2:], BFloat16FromFloat32(value))
	}
}

func storeUint8(dst []byte, src []float32, stride int) {
	for i, value := range src {
		dst[i*stride] = Uint8FromFloat32(value)
	}
}

// StoreFloat32 is Store for a destination that can be seen as float32.
func StoreFloat32(dst, src []float32, stride int) {
	if stride == 1 {
		copy(dst, src)
		return
	}
	for i, value := range src {
		dst[i*stride] = value
	}
}

// FitUint8 reports whether none of the numbers saturates or is NaN as a uint8.
func FitUint8(numbers []float32) bool {
	// The bits of numbers from 0 up are in the order of the numbers. The bits of -0 and below, and of NaN, are greater.
	least := math.Float32bits(255.5) // rounds to 256
	var largest uint32
	for _, value := range numbers {
		largest = max(largest, math.Float32bits(value))
	}
	if largest < least {
		return true
	}
	for _, value := range numbers {
		if !(value >= -0.5 && value < 255.5) { // -0.5 rounds to 0
			return false
		}
	}
	return true
}

// Uint8FromFloat32 rounds to the nearest even and saturates; NaN becomes 0.
func Uint8FromFloat32(f float32) uint8 {
	switch {
	case f >= 255:
		return 255
	case f > 0:
		// In [2^23, 2^24) the floats are the integers, so the addition rounds to nearest even and
		// leaves the integer in the low bits.
		return uint8(math.Float32bits(float32(f + 1<<23)))
	}
	return 0
}

// Widen writes n integers of type t (any but U64) as int64: from i*srcStride to i*dstStride.
func Widen(dst []byte, dstStride int, src []byte, t Num, srcStride, n int) {
	switch t {
	case U8:
		widen[uint8](dst, dstStride, src, srcStride, n)
	case I8:
		widen[int8](dst, dstStride, src, srcStride, n)
	case U16:
		widen[uint16](dst, dstStride, src, srcStride, n)
	case I16:
		widen[int16](dst, dstStride, src, srcStride, n)
	case U32:
		widen[uint32](dst, dstStride, src, srcStride, n)
	case I32:
		widen[int32](dst, dstStride, src, srcStride, n)
	}
}

func widen[T uint8 | int8 | uint16 | int16 | uint32 | int32](dst []byte, dstStride int, src []byte, srcStride, n int) {
	if numbers, ok := cast.Of[T](src); ok {
		for i := range n {
			le.PutUint64(dst[i*dstStride*8:], uint64(numbers[i*srcStride]))
		}
		return
	}
	for size, i := binary.Size(T(0)), 0; i < n; i++ {
		le.PutUint64(dst[i*dstStride*8:], uint64(T(cast.Uint(src[i*srcStride*size:], size))))
	}
}

// Copy copies n numbers of size bytes (1, 2, 4, 8 or 16): from i*srcStride to i*dstStride.
func Copy(dst []byte, dstStride int, src []byte, srcStride, n, size int) {
	if dstStride == 1 && srcStride == 1 {
		copy(dst[:n*size], src[:n*size])
		return
	}
	if dstStride == 1 {
		if done := gatherSIMD(dst, src, srcStride, n, size); done == n {
			return
		} else if done > 0 {
			dst, src, n = dst[done*size:], src[done*srcStride*size:], n-done
		}
	}
	switch size {
	case 1:
		move(dst, dstStride, src, srcStride, n)
	case 2:
		copyNumbers[uint16](dst, dstStride, src, srcStride, n, size)
	case 4:
		copyNumbers[uint32](dst, dstStride, src, srcStride, n, size)
	case 8:
		copyNumbers[uint64](dst, dstStride, src, srcStride, n, size)
	case 16:
		for i := range n {
			target, number := dst[i*dstStride*16:], src[i*srcStride*16:]
			le.PutUint64(target, le.Uint64(number))
			le.PutUint64(target[8:], le.Uint64(number[8:]))
		}
	}
}

func copyNumbers[T unsigned](dst []byte, dstStride int, src []byte, srcStride, n, size int) {
	target, aligned := cast.Of[T](dst)
	if numbers, ok := cast.Of[T](src); ok && aligned {
		move(target, dstStride, numbers, srcStride, n)
		return
	}
	for i := range n {
		cast.PutUint(dst[i*dstStride*size:], size, cast.Uint(src[i*srcStride*size:], size))
	}
}

// move copies n elements. It counts indices up, because a multiplication and the two slices of encoding/binary for each
// element take five times as long: bands of an interleaved tile come this way.
func move[T any](dst []T, dstStride int, src []T, srcStride, n int) {
	start := 0
	if dstStride == 1 {
		dst = dst[:n]
		for i := range dst {
			dst[i] = src[start]
			start += srcStride
		}
		return
	}
	end := 0
	for range n {
		dst[end] = src[start]
		end += dstStride
		start += srcStride
	}
}

// Repeat writes one element, of len(elem) bytes, n times: to i*stride.
func Repeat(dst []byte, stride int, elem []byte, n int) {
	size := len(elem)
	switch {
	case n == 0:
	case stride == 1:
		Fill(dst[:n*size], elem)
	case size == 1:
		for i := range n {
			dst[i*stride] = elem[0]
		}
	default:
		for i := range n {
			copy(dst[i*stride*size:(i*stride+1)*size], elem)
		}
	}
}
