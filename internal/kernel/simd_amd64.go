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

// inBlocks returns how many of n numbers fill blocks, 0 if the processor has not what the loop needs.
func inBlocks(n, block int, has bool) int {
	if !has {
		return 0
	}
	return n &^ (block - 1)
}

// affineSIMD is for U8, U16 and I16.
func affineSIMD(dst []float32, src []byte, t Num, a, c float32) int {
	count := inBlocks(len(dst), 16, hasAVX2)
	if count == 0 {
		return 0
	}
	_ = src[t.Size()*count-1]
	switch t {
	case U8:
		affineU8AVX2(&dst[0], &src[0], count, a, c)
	case U16:
		affineU16AVX2(&dst[0], &src[0], count, a, c)
	case I16:
		affineI16AVX2(&dst[0], &src[0], count, a, c)
	default:
		return 0
	}
	return count
}

// streamSIMD is affineSIMD past the caches, for a dst that begins a line of 64 bytes.
func streamSIMD(dst []float32, src []byte, t Num, a, c float32) int {
	count := inBlocks(len(dst), 16, hasAVX2)
	if count == 0 {
		return 0
	}
	_ = src[t.Size()*count-1]
	switch t {
	case U8:
		streamU8AVX2(&dst[0], &src[0], count, a, c)
	case U16:
		streamU16AVX2(&dst[0], &src[0], count, a, c)
	case I16:
		streamI16AVX2(&dst[0], &src[0], count, a, c)
	default:
		return 0
	}
	return count
}

func affineF32SIMD(f []float32, a, c float32) int {
	count := inBlocks(len(f), 16, hasAVX2)
	if count > 0 {
		affineF32AVX2(&f[0], count, a, c)
	}
	return count
}

func clipSIMD(f []float32, lo, hi float32) int {
	count := inBlocks(len(f), 16, hasAVX2)
	if count > 0 {
		clipAVX2(&f[0], count, lo, hi)
	}
	return count
}

func loadF16SIMD(dst []float32, src []byte) int {
	count := inBlocks(len(dst), 16, hasHalfs)
	if count > 0 {
		_ = src[2*count-1]
		loadF16AVX(&dst[0], &src[0], count)
	}
	return count
}

// storeSIMD is for F16, BF16 and U8.
func storeSIMD(dst []byte, src []float32, t Num) int {
	count := inBlocks(len(src), 32, hasHalfs)
	if count == 0 {
		return 0
	}
	_ = dst[t.Size()*count-1]
	switch t {
	case F16:
		storeF16AVX(&dst[0], &src[0], count)
	case BF16:
		storeBF16AVX2(&dst[0], &src[0], count)
	case U8:
		storeU8AVX2(&dst[0], &src[0], count)
	default:
		return 0
	}
	return count
}

// validSIMD is the first part of Valid with stride 1; bad counts the nodata in it.
func validSIMD(valid, src []byte, size int, m *Match) (done, bad int) {
	count := inBlocks(len(valid), 32, hasAVX2)
	if count == 0 {
		return 0, 0
	}
	_ = src[count*size-1]
	switch {
	case size == 4 && m.NaN && m.Inf == 0x7f800000 && m.Abs == 0x7fffffff:
		return count, validNaN32AVX2(&valid[0], &src[0], count)
	case m.NaN:
		return 0, 0
	case size == 1 && m.A == m.B:
		return count, validU8AVX2(&valid[0], &src[0], count, uint8(m.A))
	case size == 2 && m.A == m.B:
		return count, validU16AVX2(&valid[0], &src[0], count, uint16(m.A))
	case size == 4:
		return count, validU32AVX2(&valid[0], &src[0], count, uint32(m.A), uint32(m.B))
	}
	return 0, 0
}

// Of the loops below, n is a multiple of 16.

//go:noescape
func affineU8AVX2(dst *float32, src *byte, n int, a, c float32)

//go:noescape
func affineU16AVX2(dst *float32, src *byte, n int, a, c float32)

//go:noescape
func affineI16AVX2(dst *float32, src *byte, n int, a, c float32)

//go:noescape
func affineF32AVX2(f *float32, n int, a, c float32)

//go:noescape
func streamU8AVX2(dst *float32, src *byte, n int, a, c float32)

//go:noescape
func streamU16AVX2(dst *float32, src *byte, n int, a, c float32)

//go:noescape
func streamI16AVX2(dst *float32, src *byte, n int, a, c float32)

//go:noescape
func clipAVX2(f *float32, n int, lo, hi float32)

//go:noescape
func loadF16AVX(dst *float32, src *byte, n int)

//go:noescape
func storeF16AVX(dst *byte, src *float32, n int)

//go:noescape
func storeBF16AVX2(dst *byte, src *float32, n int)

// Of the loops below, n is a multiple of 32. Those named valid return how many of src are a, a or b, or
// NaN.

//go:noescape
func storeU8AVX2(dst *byte, src *float32, n int)

//go:noescape
func validU8AVX2(valid, src *byte, n int, a uint8) int

//go:noescape
func validU16AVX2(valid, src *byte, n int, a uint16) int

//go:noescape
func validU32AVX2(valid, src *byte, n int, a, b uint32) int

//go:noescape
func validNaN32AVX2(valid, src *byte, n int) int

// storeFence completes streamed stores before later ones.
func storeFence()
