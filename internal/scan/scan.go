// Package scan makes running sums of numbers, as the inverse of differences needs them: plain,
// added to a row above, and from zigzag-mapped differences. All arithmetic wraps. It is shared by
// packages openzl and geozl.
package scan

// Unsigned is a number as arithmetic sees it.
type Unsigned interface {
	uint8 | uint16 | uint32 | uint64
}

// Sum writes v plus the running sum of src to dst and returns the last sum, or v for an empty src. Both
// have one length; they may be the same memory.
func Sum[T Unsigned](dst, src []T, v T) T {
	done, v := fast(dst, src, nil, v, plain)
	return sum(dst[done:], src[done:], v)
}

// SumAbove writes the running sum of src plus above to dst. All have one length; dst and src may be
// the same memory.
func SumAbove[T Unsigned](dst, src, above []T) {
	done, last := fast(dst, src, above, 0, withAbove)
	sumAbove(dst[done:], src[done:], above[done:], last)
}

// SumZigzag is Sum, from a sum of 0, for numbers that are zigzag-mapped (0, -1, 1, -2, ... stored as 0,
// 1, 2, 3, ...).
func SumZigzag[T Unsigned](dst, src []T) {
	done, sum := fast(dst, src, nil, 0, zigzag)
	for i := done; i < len(src); i++ {
		sum += unzigzag(src[i])
		dst[i] = sum
	}
}

// SumZigzagAbove is SumAbove for numbers that are zigzag-mapped.
func SumZigzagAbove[T Unsigned](dst, src, above []T) {
	done, sum := fast(dst, src, above, 0, zigzagAbove)
	for i := done; i < len(src); i++ {
		sum += unzigzag(src[i])
		dst[i] = sum + above[i]
	}
}

// Zigzag undoes the zigzag mapping. Both have one length; they may be the same memory.
func Zigzag[T Unsigned](dst, src []T) {
	done, _ := fast(dst, src, nil, 0, mapping)
	for i := done; i < len(src); i++ {
		dst[i] = unzigzag(src[i])
	}
}

// Operations of a fast loop.
const (
	plain = iota + 1
	withAbove
	zigzag
	zigzagAbove
	mapping
	adding
)

// Add writes src plus above to dst. All have one length; dst and src may be the same memory.
func Add[T Unsigned](dst, src, above []T) {
	done, _ := fast(dst, src, above, 0, adding)
	for i := done; i < len(src); i++ {
		dst[i] = src[i] + above[i]
	}
}

func unzigzag[T Unsigned](z T) T { return z>>1 ^ -(z & 1) }

func sum[T Unsigned](dst, src []T, total T) T {
	dst = dst[:len(src)]
	for len(src) >= 4 && len(dst) >= 4 {
		// Sums of pairs first: two additions deep instead of four.
		x0, x1, x2, x3 := src[0], src[1], src[2], src[3]
		pair := x0 + x1
		dst[0] = total + x0
		dst[1] = total + pair
		dst[2] = total + pair + x2
		total += pair + (x2 + x3)
		dst[3] = total
		dst, src = dst[4:], src[4:]
	}
	for i, x := range src {
		total += x
		dst[i] = total
	}
	return total
}

func sumAbove[T Unsigned](dst, src, above []T, total T) {
	dst, above = dst[:len(src)], above[:len(src)]
	for len(src) >= 4 && len(dst) >= 4 && len(above) >= 4 {
		x0, x1, x2, x3 := src[0], src[1], src[2], src[3]
		pair := x0 + x1
		dst[0] = total + x0 + above[0]
		dst[1] = total + pair + above[1]
		dst[2] = total + pair + x2 + above[2]
		total += pair + (x2 + x3)
		dst[3] = total + above[3]
		dst, src, above = dst[4:], src[4:], above[4:]
	}
	for i, x := range src {
		total += x
		dst[i] = total + above[i]
	}
}
