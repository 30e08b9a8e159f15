package kernel

import (
	"encoding/binary"

	"github.com/chaski-eo/chaski/internal/cast"
)

// Widen writes the numbers of from bytes in src, each plus low, to dst as numbers of to bytes, from <= to.
// dst has as many numbers as src.
func Widen(dst, src []byte, to, from int, low uint64) {
	if to == from && to < 8 {
		addAll(dst, src, to, low)
		return
	}
	switch to {
	case 1:
		widenTo[uint8](dst, src, to, from, low)
	case 2:
		widenTo[uint16](dst, src, to, from, low)
	case 4:
		widenTo[uint32](dst, src, to, from, low)
	case 8:
		widenTo[uint64](dst, src, to, from, low)
	}
}

func widenTo[T unsigned](dst, src []byte, to, from int, low uint64) {
	if d, ok := cast.Of[T](dst); ok {
		switch from {
		case 1:
			widen(d, src, T(low))
			return
		case 2:
			if s, ok := cast.Of[uint16](src); ok {
				widen(d, s, T(low))
				return
			}
		case 4:
			if s, ok := cast.Of[uint32](src); ok {
				widen(d, s, T(low))
				return
			}
		case 8:
			if s, ok := cast.Of[uint64](src); ok {
				widen(d, s, T(low))
				return
			}
		}
	}
	for i := range len(src) / from {
		PutLE(dst, i, to, LE(src, i, from)+low)
	}
}

func widen[T, S unsigned](dst []T, src []S, low T) {
	dst = dst[:len(src)]
	for i, v := range src {
		dst[i] = T(v) + low
	}
}

// addAll adds low to the numbers of width bytes in src, width below 8.
func addAll(dst, src []byte, width int, low uint64) {
	// Eight bytes at a time. The highest bit of every lane is added separately, so that no carry reaches
	// the next lane.
	lanes := ^uint64(0) / (1<<(8*width) - 1)
	top := lanes << (8*width - 1)
	low &= 1<<(8*width) - 1
	add := low * lanes
	dst = dst[:len(src)]
	for len(src) >= 8 && len(dst) >= 8 {
		v := binary.LittleEndian.Uint64(src)
		binary.LittleEndian.PutUint64(dst, (v&^top+add&^top)^(v^add)&top)
		src, dst = src[8:], dst[8:]
	}
	for i := range len(src) / width {
		PutLE(dst, i, width, LE(src, i, width)+low)
	}
}
