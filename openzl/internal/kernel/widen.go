package kernel

import "github.com/chaski-eo/chaski/internal/view"

// Widen writes the numbers of from bytes in src, each plus low, to dst as numbers of to bytes,
// from <= to. dst has one for each in src.
func Widen(dst, src []byte, to, from int, low uint64) {
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
	if d, ok := view.Of[T](dst); ok {
		switch from {
		case 1:
			widen(d, src, T(low))
			return
		case 2:
			if s, ok := view.Of[uint16](src); ok {
				widen(d, s, T(low))
				return
			}
		case 4:
			if s, ok := view.Of[uint32](src); ok {
				widen(d, s, T(low))
				return
			}
		case 8:
			if s, ok := view.Of[uint64](src); ok {
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
