//go:build !purego && !twins

package kernel

import "golang.org/x/sys/cpu"

var (
	hasAVX2  = cpu.X86.HasAVX2
	hasHalfs = cpu.X86.HasAVX2 && cpu.X86.HasF16C
)

// Each function with SIMD in its name does the first part of the work, if the processor can, and returns
// how many numbers that is. The assembly needs a whole, positive number of its blocks. Lines such as
// `_ = src[2*n-1]` check bounds once, because the assembly does not.

func affineU16SIMD(dst []float32, src []byte, a, c float32) int {
	n := len(dst) &^ 15
	if !hasAVX2 || n == 0 {
		return 0
	}
	_ = src[2*n-1]
	affineU16AVX2(&dst[0], &src[0], n, a, c)
	return n
}

func affineI16SIMD(dst []float32, src []byte, a, c float32) int {
	n := len(dst) &^ 15
	if !hasAVX2 || n == 0 {
		return 0
	}
	_ = src[2*n-1]
	affineI16AVX2(&dst[0], &src[0], n, a, c)
	return n
}

func affineU8SIMD(dst []float32, src []byte, a, c float32) int {
	n := len(dst) &^ 15
	if !hasAVX2 || n == 0 {
		return 0
	}
	_ = src[n-1]
	affineU8AVX2(&dst[0], &src[0], n, a, c)
	return n
}

func affineF32SIMD(f []float32, a, c float32) int {
	n := len(f) &^ 15
	if !hasAVX2 || n == 0 {
		return 0
	}
	affineF32AVX2(&f[0], n, a, c)
	return n
}

// streamSIMD is affineU8SIMD, affineU16SIMD or affineI16SIMD past the caches, for a dst that begins a
// line of 64 bytes.
func streamSIMD(dst []float32, src []byte, t Num, a, c float32) int {
	n := len(dst) &^ 15
	if !hasAVX2 || n == 0 {
		return 0
	}
	_ = src[t.Size()*n-1]
	switch t {
	case U8:
		streamU8AVX2(&dst[0], &src[0], n, a, c)
	case U16:
		streamU16AVX2(&dst[0], &src[0], n, a, c)
	case I16:
		streamI16AVX2(&dst[0], &src[0], n, a, c)
	default:
		return 0
	}
	return n
}

func clipSIMD(f []float32, lo, hi float32) int {
	n := len(f) &^ 15
	if !hasAVX2 || n == 0 {
		return 0
	}
	clipAVX2(&f[0], n, lo, hi)
	return n
}

func loadF16SIMD(dst []float32, src []byte) int {
	n := len(dst) &^ 15
	if !hasHalfs || n == 0 {
		return 0
	}
	_ = src[2*n-1]
	loadF16AVX(&dst[0], &src[0], n)
	return n
}

func storeF16SIMD(dst []byte, src []float32) int {
	n := len(src) &^ 15
	if !hasHalfs || n == 0 {
		return 0
	}
	_ = dst[2*n-1]
	storeF16AVX(&dst[0], &src[0], n)
	return n
}

func storeBF16SIMD(dst []byte, src []float32) int {
	n := len(src) &^ 15
	if !hasAVX2 || n == 0 {
		return 0
	}
	_ = dst[2*n-1]
	storeBF16AVX2(&dst[0], &src[0], n)
	return n
}

func storeU8SIMD(dst []byte, src []float32) int {
	n := len(src) &^ 31
	if !hasAVX2 || n == 0 {
		return 0
	}
	_ = dst[n-1]
	storeU8AVX2(&dst[0], &src[0], n)
	return n
}

// validSIMD is the first part of Valid with stride 1; bad counts the nodata in it.
func validSIMD(valid, src []byte, size int, m *Match) (done, bad int) {
	n := len(valid) &^ 31
	if !hasAVX2 || n == 0 {
		return 0, 0
	}
	_ = src[n*size-1]
	switch {
	case size == 4 && m.NaN && m.Inf == 0x7f800000 && m.Abs == 0x7fffffff:
		return n, validNaN32AVX2(&valid[0], &src[0], n)
	case m.NaN:
		return 0, 0
	case size == 1 && m.A == m.B:
		return n, validU8AVX2(&valid[0], &src[0], n, uint8(m.A))
	case size == 2 && m.A == m.B:
		return n, validU16AVX2(&valid[0], &src[0], n, uint16(m.A))
	case size == 4:
		return n, validU32AVX2(&valid[0], &src[0], n, uint32(m.A), uint32(m.B))
	}
	return 0, 0
}

// sumU16SIMD replaces numbers by their running sums; it returns how many, and the last sum.
func sumU16SIMD(row []byte) (done int, sum uint16) {
	n := len(row) / 2 &^ 15
	if !hasAVX2 || n == 0 {
		return 0, 0
	}
	return n, sumU16AVX2(&row[0], n)
}

// sumU8SIMD replaces bytes by their running sums; it returns how many, and the last sum.
func sumU8SIMD(row []byte) (done int, sum uint8) {
	n := len(row) &^ 31
	if !hasAVX2 || n == 0 {
		return 0, 0
	}
	return n, sumU8AVX2(&row[0], n)
}

// joinPlanes4SIMD makes the first numbers of row from the four byte planes of tmp, most significant
// first; it returns how many.
func joinPlanes4SIMD(row, tmp []byte) int {
	plane := len(row) / 4
	n := plane &^ 15
	if !hasAVX2 || n == 0 {
		return 0
	}
	_ = tmp[4*plane-1]
	joinPlanes4AVX(&row[0], &tmp[0], plane, n)
	return n
}

// joinPlanes8SIMD is joinPlanes4SIMD for numbers of eight bytes.
func joinPlanes8SIMD(row, tmp []byte) int {
	plane := len(row) / 8
	n := plane &^ 15
	if !hasAVX2 || n == 0 {
		return 0
	}
	_ = tmp[8*plane-1]
	joinPlanes8AVX(&row[0], &tmp[0], plane, n)
	return n
}

// n is a multiple of 16.
//
//go:noescape
func affineU16AVX2(dst *float32, src *byte, n int, a, c float32)

// n is a multiple of 16.
//
//go:noescape
func affineU8AVX2(dst *float32, src *byte, n int, a, c float32)

// n is a multiple of 16.
//
//go:noescape
func affineF32AVX2(f *float32, n int, a, c float32)

// n is a multiple of 16.
//
//go:noescape
func sumU16AVX2(row *byte, n int) uint16

// n is a multiple of 32.
//
//go:noescape
func sumU8AVX2(row *byte, n int) uint8

// n is a multiple of 16, plane the length of each of the four planes.
//
//go:noescape
func joinPlanes4AVX(row, tmp *byte, plane, n int)

// n is a multiple of 16, plane the length of each of the eight planes.
//
//go:noescape
func joinPlanes8AVX(row, tmp *byte, plane, n int)

// n is a multiple of 16.
//
//go:noescape
func affineI16AVX2(dst *float32, src *byte, n int, a, c float32)

// n is a multiple of 16.
//
//go:noescape
func clipAVX2(f *float32, n int, lo, hi float32)

// n is a multiple of 16.
//
//go:noescape
func loadF16AVX(dst *float32, src *byte, n int)

// n is a multiple of 16.
//
//go:noescape
func storeF16AVX(dst *byte, src *float32, n int)

// n is a multiple of 16.
//
//go:noescape
func storeBF16AVX2(dst *byte, src *float32, n int)

// n is a multiple of 32.
//
//go:noescape
func storeU8AVX2(dst *byte, src *float32, n int)

// n is a multiple of 32. It returns how many of src are a.
//
//go:noescape
func validU8AVX2(valid, src *byte, n int, a uint8) int

// n is a multiple of 32. It returns how many of src are a.
//
//go:noescape
func validU16AVX2(valid, src *byte, n int, a uint16) int

// n is a multiple of 32. It returns how many of src are a or b.
//
//go:noescape
func validU32AVX2(valid, src *byte, n int, a, b uint32) int

// n is a multiple of 32. It returns how many of src are NaN.
//
//go:noescape
func validNaN32AVX2(valid, src *byte, n int) int

// n is a multiple of 16, dst begins a line of 64 bytes.
//
//go:noescape
func streamU8AVX2(dst *float32, src *byte, n int, a, c float32)

// n is a multiple of 16, dst begins a line of 64 bytes.
//
//go:noescape
func streamU16AVX2(dst *float32, src *byte, n int, a, c float32)

// n is a multiple of 16, dst begins a line of 64 bytes.
//
//go:noescape
func streamI16AVX2(dst *float32, src *byte, n int, a, c float32)

// storeFence completes streamed stores before later ones.
func storeFence()
