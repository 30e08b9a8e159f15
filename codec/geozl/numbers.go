package geozl

import (
	"encoding/binary"

	"github.com/chaski-eo/chaski/internal/cast"
)

// read sees b as little-endian numbers, in place where that is possible, in a copy otherwise.
func read[T cast.Number](b []byte) []T {
	if v, ok := cast.Of[T](b); ok {
		return v
	}
	v := make([]T, len(b)/size[T]())
	_, _ = binary.Decode(b, binary.LittleEndian, v) // as many numbers as there are bytes for
	return v
}

// filled runs f on b seen as numbers and brings what it wrote there back to b.
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

// le returns the little-endian number that b, at most 8 bytes, is.
func le(b []byte) uint64 {
	var v uint64
	for i, x := range b {
		v |= uint64(x) << (8 * i)
	}
	return v
}
