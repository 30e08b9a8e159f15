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
	n, v := fast(dst, src, nil, v, plain)
	return sum(dst[n:], src[n:], v)
}

// SumAbove writes the running sum of src plus above to dst. All have one length; dst and src may be
// the same memory.
func SumAbove[T Unsigned](dst, src, above []T) {
	n, v := fast(dst, src, above, 0, withAbove)
	sumAbove(dst[n:], src[n:], above[n:], v)
}

// SumZigzag is Sum, from v of 0, for numbers that are zigzag-mapped (0, -1, 1, -2, ... stored as 0,
// 1, 2, 3, ...).
func SumZigzag[T Unsigned](dst, src []T) {
	n, v := fast(dst, src, nil, 0, zigzag)
	for i := n; i < len(src); i++ {
		v += unzigzag(src[i])
		dst[i] = v
	}
}

// SumZigzagAbove is SumAbove for numbers that are zigzag-mapped.
func SumZigzagAbove[T Unsigned](dst, src, above []T) {
	n, v := fast(dst, src, above, 0, zigzagAbove)
	for i := n; i < len(src); i++ {
		v += unzigzag(src[i])
		dst[i] = v + above[i]
	}
}

// Zigzag undoes the zigzag mapping. Both have one length; they may be the same memory.
func Zigzag[T Unsigned](dst, src []T) {
	n, _ := fast(dst, src, nil, 0, mapping)
	for i := n; i < len(src); i++ {
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
	n, _ := fast(dst, src, above, 0, adding)
	for i := n; i < len(src); i++ {
		dst[i] = src[i] + above[i]
	}
}

func unzigzag[T Unsigned](z T) T { return z>>1 ^ -(z & 1) }

func sum[T Unsigned](dst, src []T, v T) T {
	dst = dst[:len(src)]
	for len(src) >= 4 && len(dst) >= 4 {
		// Sums of pairs first: two additions deep instead of four.
		a, b, c, e := src[0], src[1], src[2], src[3]
		ab := a + b
		dst[0] = v + a
		dst[1] = v + ab
		dst[2] = v + ab + c
		v += ab + (c + e)
		dst[3] = v
		dst, src = dst[4:], src[4:]
	}
	for i, x := range src {
		v += x
		dst[i] = v
	}
	return v
}

func sumAbove[T Unsigned](dst, src, above []T, v T) {
	dst, above = dst[:len(src)], above[:len(src)]
	for len(src) >= 4 && len(dst) >= 4 && len(above) >= 4 {
		a, b, c, e := src[0], src[1], src[2], src[3]
		ab := a + b
		dst[0] = v + a + above[0]
		dst[1] = v + ab + above[1]
		dst[2] = v + ab + c + above[2]
		v += ab + (c + e)
		dst[3] = v + above[3]
		dst, src, above = dst[4:], src[4:], above[4:]
	}
	for i, x := range src {
		v += x
		dst[i] = v + above[i]
	}
}
