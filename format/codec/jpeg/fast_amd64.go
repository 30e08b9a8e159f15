//go:build !purego && !twins

package jpeg

import "golang.org/x/sys/cpu"

var hasAVX2 = cpu.X86.HasAVX2

// inverse writes the samples of a block: see inversePlain.
func inverse(dst []byte, stride int, b *[64]int32, last int) {
	if !hasAVX2 || last == 0 {
		inversePlain(dst, stride, b, last)
		return
	}
	_ = dst[7*stride+7]
	inverseAVX2(&dst[0], stride, b)
}

// toRGB converts pixels: see toRGBPlain.
func toRGB(dst, lumas, cbs, crs []byte) {
	// The last vector writes four bytes of the pixels behind its own.
	if n := (len(lumas) - 2) &^ 7; hasAVX2 && n > 0 {
		_, _, _ = dst[3*n+3], cbs[n-1], crs[n-1]
		rgbAVX2(&dst[0], &lumas[0], &cbs[0], &crs[0], n)
		dst, lumas, cbs, crs = dst[3*n:], lumas[n:], cbs[n:], crs[n:]
	}
	toRGBPlain(dst, lumas, cbs, crs)
}

// spreadRows doubles a row in both directions: see spreadRowsPlain.
func spreadRows(dst, near, far []byte) {
	n := 0
	if hasAVX2 && len(near) > 8 {
		n = (len(near) - 1) &^ 7
		_, _ = dst[2*n], far[n]
		spreadAVX2(&dst[0], &near[0], &far[0], n)
	}
	spreadRowsPlain(dst, near, far, n)
}

//go:noescape
func inverseAVX2(dst *byte, stride int, b *[64]int32)

//go:noescape
func rgbAVX2(dst, lumas, cbs, crs *byte, n int)

//go:noescape
func spreadAVX2(dst, near, far *byte, n int)
