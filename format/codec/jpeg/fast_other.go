//go:build !amd64 || purego || twins

package jpeg

func inverse(dst []byte, stride int, b *[64]int32, last int) { inversePlain(dst, stride, b, last) }

func toRGB(dst, lumas, cbs, crs []byte) { toRGBPlain(dst, lumas, cbs, crs) }

func spreadRows(dst, near, far []byte) { spreadRowsPlain(dst, near, far, 0) }
