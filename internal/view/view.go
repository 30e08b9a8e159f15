// Package view sees bytes as numbers without a copy. It is the only package that uses unsafe.
// With the build tag purego, on a big-endian host, or for bytes that are not aligned, Of says no,
// and callers take their byte-wise twin.
package view

// Number is a fixed-size number that every bit pattern is valid for.
type Number interface {
	~uint8 | ~uint16 | ~uint32 | ~uint64 | ~int8 | ~int16 | ~int32 | ~int64 | ~float32 | ~float64
}
