package kernel

import "github.com/chaski-eo/chaski/internal/cast"

// Multiply writes the numbers of width bytes in src, multiplied by `by`, to dst. It reports whether no number
// was above highest. dst and src have equal lengths.
func Multiply(dst, src []byte, width int, by, highest uint64) bool {
	switch width {
	case 1:
		return multiply(dst, src, uint8(by), uint8(highest))
	case 2:
		return multiply(dst, src, uint16(by), uint16(highest))
	case 4:
		return multiply(dst, src, uint32(by), uint32(highest))
	}
	return multiply(dst, src, by, highest)
}

func multiply[T unsigned](dst, src []byte, by, highest T) bool {
	numbers := cast.Values[T](src)
	var greatest T
	cast.Fill(dst, func(d []T) {
		d = d[:len(numbers)]
		for i, v := range numbers {
			greatest = max(greatest, v)
			d[i] = v * by
		}
	})
	return greatest <= highest
}
