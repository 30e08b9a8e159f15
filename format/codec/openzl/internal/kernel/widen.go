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
	cast.ByWidth(to, widenTo[uint8], widenTo[uint16], widenTo[uint32], widenTo[uint64])(dst, src, from, low)
}

func widenTo[T unsigned](dst, src []byte, from int, low uint64) {
	cast.ByWidth(from, widen[T, uint8], widen[T, uint16], widen[T, uint32], widen[T, uint64])(dst, src, T(low))
}

func widen[T, S unsigned](dst, src []byte, low T) {
	numbers := cast.Values[S](src)
	cast.Fill(dst, func(out []T) {
		out = out[:len(numbers)]
		for i, number := range numbers {
			out[i] = T(number) + low
		}
	})
}

// addAll adds low to the numbers of width bytes in src, width below 8.
func addAll(dst, src []byte, width int, low uint64) {
	// Eight bytes at a time. The highest bit of every lane is added separately, so no carry reaches
	// the next lane.
	lanes := ^uint64(0) / (1<<(8*width) - 1)
	top := lanes << (8*width - 1)
	low &= 1<<(8*width) - 1
	add := low * lanes
	dst = dst[:len(src)]
	for len(src) >= 8 && len(dst) >= 8 {
		word := binary.LittleEndian.Uint64(src)
		binary.LittleEndian.PutUint64(dst, (word&^top+add&^top)^(word^add)&top)
		src, dst = src[8:], dst[8:]
	}
	for i := range len(src) / width {
		PutLE(dst, i, width, LE(src, i, width)+low)
	}
}
