package cast

import "encoding/binary"

// Values returns b as little-endian numbers. They share the memory of b where Of can see it, and are a
// copy otherwise. Bytes past the last whole number are left out.
func Values[T Number](b []byte) []T {
	if numbers, ok := Of[T](b); ok {
		return numbers
	}
	var v T
	numbers := make([]T, len(b)/binary.Size(v))
	// Decode fails only if b is shorter than numbers, which it is not.
	_, _ = binary.Decode(b, binary.LittleEndian, numbers)
	return numbers
}

// Fill runs f on b as little-endian numbers, and copies them back to b if they were a copy.
func Fill[T Number](b []byte, f func([]T)) {
	numbers, ok := Of[T](b)
	if !ok {
		numbers = Values[T](b)
	}
	if f(numbers); !ok {
		_, _ = binary.Encode(b, binary.LittleEndian, numbers) // fails only if b is shorter
	}
}

// Uint returns the little-endian number of 1, 2, 4 or 8 bytes at the front of b.
func Uint(b []byte, size int) uint64 {
	switch size {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	}
	return binary.LittleEndian.Uint64(b)
}

// PutUint writes the low 1, 2, 4 or 8 bytes of v to the front of b, the lowest first.
func PutUint(b []byte, size int, v uint64) {
	switch size {
	case 1:
		b[0] = byte(v)
	case 2:
		binary.LittleEndian.PutUint16(b, uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(b, uint32(v))
	default:
		binary.LittleEndian.PutUint64(b, v)
	}
}

// ByWidth returns the one of four functions that is for numbers of width bytes, 1, 2, 4 or 8.
func ByWidth[F any](width int, of8, of16, of32, of64 F) F {
	switch width {
	case 1:
		return of8
	case 2:
		return of16
	case 4:
		return of32
	}
	return of64
}
