//go:build !purego && !twins

package tiff

import "golang.org/x/sys/cpu"

var hasBMI2 = cpu.X86.HasBMI2

// some decodes some codes, at least one. It reports whether the stream goes on.
func (d *lzwDecoder) some(dst, src []byte, need int) bool {
	if !hasBMI2 {
		return d.steps(dst, src, need, len(dst))
	}
	if d.length > 0 && d.out < need-8 && len(src) > 8 {
		lzwBMI2(d, dst[:need], src)
	}
	return d.steps(dst, src, need, 1)
}

// lzwBMI2 does what steps does as long as all is common: the width does not grow, dst and src have 8 bytes more, and
// the code is valid and neither clear nor end.
//
//go:noescape
func lzwBMI2(d *lzwDecoder, dst, src []byte)
