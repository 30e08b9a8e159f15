//go:build !purego && !twins && (amd64 || arm64)

package cast

import "unsafe"

// Of returns b as a slice of little-endian T, or false if b is not aligned. Bytes past the last whole T
// are left out.
func Of[T Number](b []byte) ([]T, bool) {
	var t T
	size := unsafe.Sizeof(t)
	if uintptr(len(b)) < size {
		return nil, true
	}
	start := unsafe.Pointer(unsafe.SliceData(b))
	if uintptr(start)%size != 0 {
		return nil, false
	}
	return unsafe.Slice((*T)(start), uintptr(len(b))/size), true
}

// Bytes returns the little-endian bytes of s.
func Bytes[T Number](s []T) ([]byte, bool) {
	var t T
	if len(s) == 0 {
		return nil, true
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), uintptr(len(s))*unsafe.Sizeof(t)), true
}

// Aligned returns n zeroed bytes whose first is at an address divisible by 64.
func Aligned(n int) []byte {
	// 63 bytes more, so one of the first 64 addresses is a multiple of 64.
	memory := make([]byte, n+63)
	offset := int(-uintptr(unsafe.Pointer(unsafe.SliceData(memory))) & 63)
	return memory[offset : offset+n : offset+n]
}

// ToLine returns how many numbers of s precede the first one at an address divisible by 64.
func ToLine[T Number](s []T) int {
	var t T
	distance := -uintptr(unsafe.Pointer(unsafe.SliceData(s))) & 63
	return min(len(s), int(distance/unsafe.Sizeof(t)))
}
