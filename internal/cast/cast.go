// Package cast views bytes as numbers without a copy. It is the only package that uses unsafe for that.
// With the build tag purego, on processors other than amd64 and arm64, and for bytes that are not
// aligned, Of returns false, and callers copy or use their byte-wise twin.
package cast

import "reflect"

// Number is a fixed-size number for which every bit pattern is valid.
type Number interface {
	~uint8 | ~uint16 | ~uint32 | ~uint64 | ~int8 | ~int16 | ~int32 | ~int64 | ~float32 | ~float64
}

// IsWidth reports whether there are numbers of so many bytes: 1, 2, 4 or 8.
func IsWidth(size int) bool { return size == 1 || size == 2 || size == 4 || size == 8 }

// Offset returns where in b the bytes of part begin, and whether all of them lie in b.
func Offset(b, part []byte) (int, bool) {
	if len(b) == 0 || len(part) == 0 {
		return 0, false
	}
	o := reflect.ValueOf(part).Pointer() - reflect.ValueOf(b).Pointer()
	return int(o), o < uintptr(len(b)) && uintptr(len(part)) <= uintptr(len(b))-o
}
