package geozl

import (
	"encoding/binary"

	"github.com/chaski-eo/chaski/internal/cast"
)

// read returns b as little-endian numbers, in place if possible, otherwise as a copy.
func read[T cast.Number](b []byte) []T { return cast.Values[T](b) }

// filled runs f on b as numbers, and copies them back to b if they were a copy.
func filled[T cast.Number](b []byte, f func([]T)) {
	v, ok := cast.Of[T](b)
	if ok {
		f(v)
		return
	}
	v = read[T](b)
	f(v)
	_, _ = binary.Encode(b, binary.LittleEndian, v)
}

func size[T cast.Number]() int {
	return binary.Size(T(0))
}

// isWidth reports whether numbers of n bytes exist.
func isWidth(n int) bool { return n == 1 || n == 2 || n == 4 || n == 8 }

// le returns b, at most 8 bytes, as a little-endian number.
func le(b []byte) uint64 {
	var v uint64
	for i, x := range b {
		v |= uint64(x) << (8 * i)
	}
	return v
}
