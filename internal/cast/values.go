package cast

import "encoding/binary"

// Values returns b as little-endian numbers. They share the memory of b where Of can see it, and are a
// copy otherwise. Bytes past the last whole number are left out.
func Values[T Number](b []byte) []T {
	if s, ok := Of[T](b); ok {
		return s
	}
	var v T
	s := make([]T, len(b)/binary.Size(v))
	// Decode fails only if b is shorter than s, which it is not.
	_, _ = binary.Decode(b, binary.LittleEndian, s)
	return s
}

// Fill runs f on b as little-endian numbers, and copies them back to b if they were a copy.
func Fill[T Number](b []byte, f func([]T)) {
	v, ok := Of[T](b)
	if !ok {
		v = Values[T](b)
	}
	if f(v); !ok {
		_, _ = binary.Encode(b, binary.LittleEndian, v) // it fails only if b is shorter than v
	}
}
