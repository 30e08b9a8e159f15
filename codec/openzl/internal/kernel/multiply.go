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
	var most uint64
	for i := range len(src) / width {
		v := LE(src, i, width)
		most = max(most, v)
		PutLE(dst, i, width, v*by)
	}
	return most <= highest
}

func multiply[T unsigned](dst, src []T, by, highest T) bool {
	dst = dst[:len(src)]
	var most T
	for i, v := range src {
		most = max(most, v)
		dst[i] = v * by
	}
	return most <= highest
}
