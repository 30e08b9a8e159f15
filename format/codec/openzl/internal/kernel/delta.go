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
	cast.ByWidth(width, delta[uint8], delta[uint16], delta[uint32], delta[uint64])(dst, deltas, LE(first, 0, width))
}

func delta[T unsigned](dst, deltas []byte, first uint64) {
	cast.Fill(dst, func(out []T) {
		out[0] = T(first)
		scan.Sum(out[1:], cast.Values[T](deltas), T(first))
	})
}

// Differences writes the differences of neighbouring numbers of width bytes in src, modulo the
// width, to dst. dst has one number less than src, which has at least one.
func Differences(dst, src []byte, width int) {
	cast.ByWidth(width, differences[uint8], differences[uint16], differences[uint32], differences[uint64])(dst, src)
}

func differences[T unsigned](dst, src []byte) {
	numbers := cast.Values[T](src)
	cast.Fill(dst, func(out []T) {
		before, rest := numbers[0], numbers[1:]
		out = out[:len(rest)]
		for i, number := range rest {
			out[i] = number - before
			before = number
		}
	})
}
