//go:build !amd64 || purego || twins

package scan

// fast does nothing here: there are no other loops than those in Go.
func fast[T Unsigned](_, _, _ []T, v T, _ int) (int, T) { return 0, v }

// Rows does nothing either.
func Rows(_ []byte, _, _ int) (done int) { return 0 }
