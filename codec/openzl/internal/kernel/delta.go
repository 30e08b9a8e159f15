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
	switch width {
	case 1:
		delta(dst, deltas, first[0])
	case 2:
		deltaWide[uint16](dst, first, deltas, width)
	case 4:
		deltaWide[uint32](dst, first, deltas, width)
	case 8:
		deltaWide[uint64](dst, first, deltas, width)
	}
}

func deltaWide[T unsigned](dst, first, deltas []byte, width int) {
	v := LE(first, 0, width)
	if d, ok := cast.Of[T](dst); ok {
		if s, ok := cast.Of[T](deltas); ok {
			delta(d, s, T(v))
			return
		}
	}
	deltaBytes(dst, deltas, v, width)
}

func delta[T unsigned](dst, deltas []T, v T) {
	dst[0] = v
	scan.Sum(dst[1:], deltas, v)
}

func deltaBytes(dst, deltas []byte, v uint64, width int) {
	PutLE(dst, 0, width, v)
	for i := range len(deltas) / width {
		v += LE(deltas, i, width)
		PutLE(dst, i+1, width, v)
	}
}

// Differences writes the differences of neighbouring numbers of width bytes in src, modulo the
// width, to dst. dst has one number less than src, which has at least one.
func Differences(dst, src []byte, width int) {
	switch width {
	case 1:
		differences(dst, src)
	case 2:
		differencesWide[uint16](dst, src, width)
	case 4:
		differencesWide[uint32](dst, src, width)
	case 8:
		differencesWide[uint64](dst, src, width)
	}
}

func differencesWide[T unsigned](dst, src []byte, width int) {
	if d, ok := cast.Of[T](dst); ok {
		if s, ok := cast.Of[T](src); ok {
			differences(d, s)
			return
		}
	}
	for i := range len(dst) / width {
		PutLE(dst, i, width, LE(src, i+1, width)-LE(src, i, width))
	}
}

func differences[T unsigned](dst, src []T) {
	v := src[0]
	src = src[1:]
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = x - v
		v = x
	}
}
