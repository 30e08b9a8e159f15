//go:build amd64 && !purego && !twins

package planes

// These loops join 16*n values, n >= 1, of planes that begin plane bytes apart. They use SSE2, which
// every amd64 has.

//go:noescape
func join2x16(dst, src *byte, plane, n int)

//go:noescape
func join4x16(dst, src *byte, plane, n int)

//go:noescape
func join8x16(dst, src *byte, plane, n int)

// join2, join4 and join8 return how many of the n values in dst and src they joined.
func join2(dst, src []byte, n int) int {
	if n < 16 {
		return 0
	}
	join2x16(&dst[:2*n][0], &src[:2*n][0], n, n/16)
	return n &^ 15
}

func join4(dst, src []byte, n int) int {
	if n < 16 {
		return 0
	}
	join4x16(&dst[:4*n][0], &src[:4*n][0], n, n/16)
	return n &^ 15
}

func join8(dst, src []byte, n int) int {
	if n < 16 {
		return 0
	}
	join8x16(&dst[:8*n][0], &src[:8*n][0], n, n/16)
	return n &^ 15
}
