package kernel

import "github.com/chaski-eo/chaski/internal/cast"

// Multiply writes the numbers of width bytes in src, multiplied by `by`, to dst. It reports whether no number
// was above highest. dst and src have equal lengths.
func Multiply(dst, src []byte, width int, by, highest uint64) bool {
	f := cast.ByWidth(width, multiply[uint8], multiply[uint16], multiply[uint32], multiply[uint64])
	return f(dst, src, by, highest)
}

func multiply[T unsigned](dst, src []byte, by, highest uint64) bool {
	numbers := cast.Values[T](src)
	var greatest T
	cast.Fill(dst, func(out []T) {
		out = out[:len(numbers)]
		for i, number := range numbers {
			greatest = max(greatest, number)
			out[i] = number * T(by)
		}
	})
	return uint64(greatest) <= highest
}
