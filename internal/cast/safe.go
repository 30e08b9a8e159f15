//go:build purego || twins || !(amd64 || arm64)

package cast

// Of returns false: callers use their byte-wise twin.
func Of[T Number](b []byte) ([]T, bool) { return nil, false }

// Bytes returns false.
func Bytes[T Number](s []T) ([]byte, bool) { return nil, false }

// Aligned returns n zeroed bytes. Without unsafe their address cannot be chosen.
func Aligned(n int) []byte { return make([]byte, n) }

// ToLine returns len(s), because addresses are not known here.
func ToLine[T Number](s []T) int { return len(s) }
