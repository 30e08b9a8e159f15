package kernel

import "github.com/chaski-eo/chaski/internal/cast"

// Multiply writes the numbers of width bytes in src, multiplied by `by`, to dst. It reports whether no number
// was above highest. dst and src have equal lengths.
func Multiply(dst, src []byte, width int, by, highest uint64) bool {
	switch width {
	case 1:
		return multiply(dst, src, uint8(by), uint8(highest))
	case 2:
		if d, ok := cast.Of[uint16](dst); ok {
			if s, ok := cast.Of[uint16](src); ok {
				return multiply(d, s, uint16(by), uint16(highest))
			}
		}
	case 4:
		if d, ok := cast.Of[uint32](dst); ok {
			if s, ok := cast.Of[uint32](src); ok {
				return multiply(d, s, uint32(by), uint32(highest))
			}
		}
	}
	var greatest uint64
	for i := range len(src) / width {
		v := LE(src, i, width)
		greatest = max(greatest, v)
		PutLE(dst, i, width, v*by)
	}
	return greatest <= highest
}

func multiply[T unsigned](dst, src []T, by, highest T) bool {
	dst = dst[:len(src)]
	var greatest T
	for i, v := range src {
		greatest = max(greatest, v)
		dst[i] = v * by
	}
	return greatest <= highest
}
