package kernel

import (
	"math"

	"github.com/chaski-eo/chaski/internal/cast"
)

// Store writes src to dst as numbers of type t (F32, F16, BF16 or U8): number i goes to i*stride.
// Floats are rounded to the nearest even; U8 is rounded to the nearest even and saturates, and NaN
// becomes 0. dst must have room for them all; bytes between them are not touched.
func Store(dst []byte, src []float32, t Num, stride int) {
	switch t {
	case F32:
		if d, ok := cast.Of[float32](dst); ok {
			StoreFloat32(d, src, stride)
			return
		}
		for i, v := range src {
			le.PutUint32(dst[i*stride*4:], math.Float32bits(v))
		}
	case F16:
		if stride == 1 {
			k := storeF16SIMD(dst, src)
			dst, src = dst[2*k:], src[k:]
		}
		storeFloat16(dst, src, stride)
	case BF16:
		if stride == 1 {
			k := storeBF16SIMD(dst, src)
			dst, src = dst[2*k:], src[k:]
		}
		storeBFloat16(dst, src, stride)
	case U8:
		if stride == 1 {
			k := storeU8SIMD(dst, src)
			dst, src = dst[k:], src[k:]
		}
		storeUint8(dst, src, stride)
	}
}

func storeFloat16(dst []byte, src []float32, stride int) {
	for i, v := range src {
		le.PutUint16(dst[i*stride*2:], Float16FromFloat32(v))
	}
}

func storeBFloat16(dst []byte, src []float32, stride int) {
	for i, v := range src {
		le.PutUint16(dst[i*stride*2:], BFloat16FromFloat32(v))
	}
}

func storeUint8(dst []byte, src []float32, stride int) {
	for i, v := range src {
		dst[i*stride] = Uint8FromFloat32(v)
	}
}

// StoreFloat32 is Store for a destination that can be seen as float32.
func StoreFloat32(dst, src []float32, stride int) {
	if stride == 1 {
		copy(dst, src)
		return
	}
	for i, v := range src {
		dst[i*stride] = v
	}
}

// FitUint8 reports whether no number of f saturates or is NaN as a uint8.
func FitUint8(f []float32) bool {
	// The bits of numbers from 0 up are in the order of the numbers. The bits of -0 and below, and of NaN, are greater.
	least := math.Float32bits(255.5) // rounds to 256
	var largest uint32
	for _, v := range f {
		largest = max(largest, math.Float32bits(v))
	}
	if largest < least {
		return true
	}
	for _, v := range f {
		if !(v >= -0.5 && v < 255.5) { // -0.5 rounds to 0
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
		// In [2^23, 2^24) the floats are the integers, so that the addition rounds to nearest even and
		// leaves the integer in the low bits.
		return uint8(math.Float32bits(float32(f + 1<<23)))
	}
	return 0
}

// Widen writes n integers of type t (any but U64) as int64: from i*srcStride to i*dstStride.
func Widen(dst []byte, dstStride int, src []byte, t Num, srcStride, n int) {
	switch t {
	case U8:
		for i := range n {
			le.PutUint64(dst[i*dstStride*8:], uint64(src[i*srcStride]))
		}
	case I8:
		for i := range n {
			le.PutUint64(dst[i*dstStride*8:], uint64(int8(src[i*srcStride])))
		}
	case U16:
		for i := range n {
			le.PutUint64(dst[i*dstStride*8:], uint64(le.Uint16(src[i*srcStride*2:])))
		}
	case I16:
		for i := range n {
			le.PutUint64(dst[i*dstStride*8:], uint64(int16(le.Uint16(src[i*srcStride*2:]))))
		}
	case U32:
		for i := range n {
			le.PutUint64(dst[i*dstStride*8:], uint64(le.Uint32(src[i*srcStride*4:])))
		}
	case I32:
		for i := range n {
			le.PutUint64(dst[i*dstStride*8:], uint64(int32(le.Uint32(src[i*srcStride*4:]))))
		}
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
		if d, s, ok := pair[uint16](dst, src); ok {
			move(d, dstStride, s, srcStride, n)
			return
		}
		for i := range n {
			le.PutUint16(dst[i*dstStride*2:], le.Uint16(src[i*srcStride*2:]))
		}
	case 4:
		if d, s, ok := pair[uint32](dst, src); ok {
			move(d, dstStride, s, srcStride, n)
			return
		}
		for i := range n {
			le.PutUint32(dst[i*dstStride*4:], le.Uint32(src[i*srcStride*4:]))
		}
	case 8:
		if d, s, ok := pair[uint64](dst, src); ok {
			move(d, dstStride, s, srcStride, n)
			return
		}
		for i := range n {
			le.PutUint64(dst[i*dstStride*8:], le.Uint64(src[i*srcStride*8:]))
		}
	case 16:
		for i := range n {
			d, s := dst[i*dstStride*16:], src[i*srcStride*16:]
			le.PutUint64(d, le.Uint64(s))
			le.PutUint64(d[8:], le.Uint64(s[8:]))
		}
	}
}

// pair returns both as numbers, and whether their addresses allow that.
func pair[T cast.Number](dst, src []byte) (d, s []T, ok bool) {
	d, aligned := cast.Of[T](dst)
	s, ok = cast.Of[T](src)
	return d, s, ok && aligned
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
		dst = dst[:n*size]
		done := copy(dst, elem)
		// The source doubles until it has 4 KiB, so that it stays in the first-level cache.
		for done < len(dst) {
			done += copy(dst[done:], dst[:min(done, 4096/size*size)])
		}
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
