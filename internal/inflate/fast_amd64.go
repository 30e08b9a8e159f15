//go:build !purego && !twins

package inflate

import "golang.org/x/sys/cpu"

var hasBMI2 = cpu.X86.HasBMI2

// fast is block while both slices have room for a turn of its loop.
func (d *Decoder) fast(dst []byte, at int) (int, error) {
	if !hasBMI2 {
		return d.turns(dst, at)
	}
	switch out, far := fastBMI2(d, dst, at); {
	case far < 0:
		return out, errCodes
	case far > 0:
		return out, errFar(far, out)
	default:
		return out, nil
	}
}

// fastBMI2 is turns. far is 0, less than 0 for a distance that is not a code, or the distance of a match that begins
// before dst.
//
//go:noescape
func fastBMI2(d *Decoder, dst []byte, at int) (out, far int)
