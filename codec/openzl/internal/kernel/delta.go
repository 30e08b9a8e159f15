package kernel

import (
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/scan"
)

type unsigned interface {
	uint8 | uint16 | uint32 | uint64
}

// Delta writes first and then the running sum of first and deltas, modulo the width, to dst. first has width
// bytes; dst has one element more than deltas.
func Delta(dst, first, deltas []byte, width int) {
	v := LE(first, 0, width)
	switch width {
	case 1:
		delta(dst, deltas, uint8(v))
	case 2:
		delta(dst, deltas, uint16(v))
	case 4:
		delta(dst, deltas, uint32(v))
	case 8:
		delta(dst, deltas, v)
	}
}

func delta[T unsigned](dst, deltas []byte, v T) {
	cast.Fill(dst, func(d []T) {
		d[0] = v
		scan.Sum(d[1:], cast.Values[T](deltas), v)
	})
}

// Differences writes the differences of neighbouring numbers of width bytes in src, modulo the
// width, to dst. dst has one number less than src, which has at least one.
func Differences(dst, src []byte, width int) {
	switch width {
	case 1:
		differences[uint8](dst, src)
	case 2:
		differences[uint16](dst, src)
	case 4:
		differences[uint32](dst, src)
	case 8:
		differences[uint64](dst, src)
	}
}

func differences[T unsigned](dst, src []byte) {
	numbers := cast.Values[T](src)
	cast.Fill(dst, func(d []T) {
		v, rest := numbers[0], numbers[1:]
		d = d[:len(rest)]
		for i, x := range rest {
			d[i] = x - v
			v = x
		}
	})
}
