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
		widenTo(dst, src, from, uint8(low))
	case 2:
		widenTo(dst, src, from, uint16(low))
	case 4:
		widenTo(dst, src, from, uint32(low))
	case 8:
		widenTo(dst, src, from, low)
	}
}

func widenTo[T unsigned](dst, src []byte, from int, low T) {
	cast.Fill(dst, func(d []T) {
		switch from {
		case 1:
			widen(d, src, low)
		case 2:
			widen(d, cast.Values[uint16](src), low)
		case 4:
			widen(d, cast.Values[uint32](src), low)
		case 8:
			widen(d, cast.Values[uint64](src), low)
		}
	})
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
