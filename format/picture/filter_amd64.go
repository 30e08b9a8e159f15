//go:build !purego && !twins

package picture

import "golang.org/x/sys/cpu"

var hasAVX2 = cpu.X86.HasAVX2

// filterLoad is how many bytes of a pixel the loops below load and store: its own, and bytes of the next pixels,
// which come later.
const filterLoad = 8

// filterPixels returns how many pixels of a row the loops below can do.
func filterPixels(out, in, up []byte, size int) int {
	if !hasAVX2 || size < 2 || size > filterLoad || len(out) < filterLoad {
		return 0
	}
	pixels := (len(out)-filterLoad)/size + 1
	_, _ = in[(pixels-1)*size+filterLoad-1], up[(pixels-1)*size+filterLoad-1]
	return pixels
}

func addSIMD(out, in, up []byte) int {
	count := len(out) &^ 31
	if !hasAVX2 || count == 0 {
		return 0
	}
	_, _ = in[count-1], up[count-1]
	addAVX2(&out[0], &in[0], &up[0], count)
	return count
}

// averageSIMD undoes filterAverage on the first part of a row, and returns how many bytes that is.
func averageSIMD(out, in, up []byte, size int) int {
	pixels := filterPixels(out, in, up, size)
	if pixels > 0 {
		averageAVX(&out[0], &in[0], &up[0], pixels, size)
	}
	return pixels * size
}

// paethSIMD is averageSIMD of filterPaeth.
func paethSIMD(out, in, up []byte, size int) int {
	pixels := filterPixels(out, in, up, size)
	if pixels > 0 {
		paethAVX(&out[0], &in[0], &up[0], pixels, size)
	}
	return pixels * size
}

// addAVX2 adds n bytes, a multiple of 32.
//
//go:noescape
func addAVX2(out, in, up *byte, n int)

//go:noescape
func averageAVX(out, in, up *byte, pixels, size int)

//go:noescape
func paethAVX(out, in, up *byte, pixels, size int)
