package kernel

import (
	"math"

	"github.com/chaski-eo/chaski/internal/view"
)

// Store writes src to dst as numbers of type t (F32, F16, BF16 or U8): number i goes to i*stride.
// Floats are rounded to the nearest even; U8 is rounded to the nearest even and saturates, and NaN
// becomes 0. dst must have room for them all; what lies between is not touched.
func Store(dst []byte, src []float32, t Num, stride int) {
	switch t {
	case F32:
		if d, ok := view.Of[float32](dst); ok {
			storeFloat32(d, src, stride)
			return
		}
		for i, v := range src {
			le.PutUint32(dst[i*stride*4:], math.Float32bits(v))
		}
	case F16:
		for i, v := range src {
			le.PutUint16(dst[i*stride*2:], Float16FromFloat32(v))
		}
	case BF16:
		for i, v := range src {
			le.PutUint16(dst[i*stride*2:], BFloat16FromFloat32(v))
		}
	case U8:
		for i, v := range src {
			dst[i*stride] = Uint8FromFloat32(v)
		}
	}
}

func storeFloat32(dst, src []float32, stride int) {
	if stride == 1 {
		copy(dst, src)
		return
	}
	for i, v := range src {
		dst[i*stride] = v
	}
}

// Uint8FromFloat32 rounds to the nearest even and saturates; NaN becomes 0.
func Uint8FromFloat32(f float32) uint8 {
	switch {
	case f >= 255:
		return 255
	case f > 0:
		// In [2^23, 2^24) floats are the integers: the addition rounds to one, and leaves it in the low bits.
		return uint8(math.Float32bits(float32(f + 1<<23)))
	}
	return 0
}

// Copy copies n numbers of size bytes (1, 2, 4, 8 or 16): from i*srcStride to i*dstStride.
func Copy(dst []byte, dstStride int, src []byte, srcStride, n, size int) {
	if dstStride == 1 && srcStride == 1 {
		copy(dst[:n*size], src[:n*size])
		return
	}
	switch size {
	case 1:
		for i := range n {
			dst[i*dstStride] = src[i*srcStride]
		}
	case 2:
		for i := range n {
			le.PutUint16(dst[i*dstStride*2:], le.Uint16(src[i*srcStride*2:]))
		}
	case 4:
		for i := range n {
			le.PutUint32(dst[i*dstStride*4:], le.Uint32(src[i*srcStride*4:]))
		}
	case 8:
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

// Repeat writes one element, of len(elem) bytes, n times: to i*stride.
func Repeat(dst []byte, stride int, elem []byte, n int) {
	if len(elem) == 1 {
		v := elem[0]
		if stride == 1 {
			d := dst[:n]
			for i := range d { // compiled to a memset where v is 0
				d[i] = v
			}
			return
		}
		for i := range n {
			dst[i*stride] = v
		}
		return
	}
	if stride == 1 {
		dst = dst[:n*len(elem)]
		for done := copy(dst, elem); done < len(dst); done *= 2 {
			copy(dst[done:], dst[:done])
		}
		return
	}
	step := stride * len(elem)
	for i := range n {
		copy(dst[i*step:i*step+len(elem)], elem)
	}
}
