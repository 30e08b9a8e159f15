package geozl

import (
	"encoding/binary"

	"github.com/chaski-eo/chaski/internal/cast"
)

// read returns b as little-endian numbers, in place if possible, otherwise as a copy.
func read[T cast.Number](b []byte) []T { return cast.Values[T](b) }

func size[T cast.Number]() int {
	return binary.Size(T(0))
}

// isWidth reports whether numbers of n bytes exist.
func isWidth(n int) bool { return n == 1 || n == 2 || n == 4 || n == 8 }
