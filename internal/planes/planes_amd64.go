//go:build amd64 && !purego && !twins

package planes

// These loops join 16*n bytes of each plane, n >= 1. They use SSE2, which every amd64 has.

//go:noescape
func join2x16(dst, a, b *byte, n int)

//go:noescape
func join4x16(dst, a, b, c, d *byte, n int)

//go:noescape
func join8x16(dst *byte, planes *[8]*byte, n int)

func join2(dst, a, b []byte) {
	b, dst = b[:len(a)], dst[:2*len(a)]
	blocks := len(a) / 16
	if blocks > 0 {
		join2x16(&dst[0], &a[0], &b[0], blocks)
	}
	join2Go(dst[32*blocks:], a[16*blocks:], b[16*blocks:])
}

func join4(dst []byte, planes *[4][]byte) {
	size := len(planes[0])
	blocks := size / 16
	if blocks > 0 {
		plane1, plane2, plane3 := planes[1][:size], planes[2][:size], planes[3][:size]
		join4x16(&dst[:4*size][0], &planes[0][0], &plane1[0], &plane2[0], &plane3[0], blocks)
	}
	join4Go(dst, planes, 16*blocks)
}

func join8(dst []byte, planes *[8][]byte) {
	size := len(planes[0])
	blocks := size / 16
	if blocks > 0 {
		var first [8]*byte
		for index, plane := range planes {
			first[index] = &plane[:size][0]
		}
		join8x16(&dst[:8*size][0], &first, blocks)
	}
	join8Go(dst, planes, 16*blocks)
}
