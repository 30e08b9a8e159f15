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
	n := len(a) / 16
	if n > 0 {
		join2x16(&dst[0], &a[0], &b[0], n)
	}
	join2Go(dst[32*n:], a[16*n:], b[16*n:])
}

func join4(dst []byte, p *[4][]byte) {
	size := len(p[0])
	n := size / 16
	if n > 0 {
		join4x16(&dst[:4*size][0], &p[0][0], &p[1][:size][0], &p[2][:size][0], &p[3][:size][0], n)
	}
	join4Go(dst, p, 16*n)
}

func join8(dst []byte, p *[8][]byte) {
	size := len(p[0])
	n := size / 16
	if n > 0 {
		var first [8]*byte
		for k, plane := range p {
			first[k] = &plane[:size][0]
		}
		join8x16(&dst[:8*size][0], &first, n)
	}
	join8Go(dst, p, 16*n)
}
