//go:build !purego && !twins

package kernel

import "github.com/chaski-eo/chaski/internal/cast"

// planarBlock is how many samples the loops take at a time.
const planarBlock = 16

// PlanarFast reports whether Convert has loops in assembly for rows that fill lines.
func PlanarFast() bool { return hasAVX2 }

// convertSIMD does all of Convert, or nothing and returns false.
func (p *Planar) convertSIMD(dst []byte, first, pitch int, above, residuals []byte, rows int) bool {
	n, row := len(above)/2, len(above)/2*p.To.Size()
	if !hasAVX2 || n == 0 || row%PlanarLine != 0 || pitch%PlanarLine != 0 {
		return false
	}
	least, last := first+min(pitch, 0)*(rows-1), first+max(pitch, 0)*(rows-1)
	_, _, _ = dst[least], dst[last+row-1], residuals[2*n*rows-1]
	if cast.ToLine(dst[first:last+row]) != 0 {
		return false
	}
	out, above0, residual := &dst[first], &above[0], &residuals[0]
	switch {
	case p.To == p.From:
		planarCopyAVX2(out, above0, residual, pitch, rows, n/planarBlock)
	case p.From == U16:
		planarU16AVX2(out, above0, residual, pitch, rows, n/planarBlock, p.A, p.C)
	default:
		planarI16AVX2(out, above0, residual, pitch, rows, n/planarBlock, p.A, p.C)
	}
	return true
}

// Each of these makes rows of n blocks, both at least 1, of elements that begin lines of 64 bytes.

//go:noescape
func planarCopyAVX2(dst, above, residuals *byte, pitch, rows, n int)

//go:noescape
func planarU16AVX2(dst, above, residuals *byte, pitch, rows, n int, a, c float32)

//go:noescape
func planarI16AVX2(dst, above, residuals *byte, pitch, rows, n int, a, c float32)
