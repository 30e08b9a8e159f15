//go:build !purego && !twins

package inflate

import (
	"hash/adler32"

	"golang.org/x/sys/cpu"
)

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

// Adler32 returns the checksum of a zlib stream (RFC 1950, section 9).
func Adler32(p []byte) uint32 {
	if !cpu.X86.HasAVX2 {
		return adler32.Checksum(p)
	}
	// The sums of so many bytes fit in 32 bits, as in zlib, which has 5552: 173 times 32.
	const prime, most = 65521, 5536
	a, b := uint32(1), uint32(0)
	for len(p) >= 32 {
		size := min(len(p)&^31, most)
		a, b = adlerAVX2(&p[0], size, a, b)
		a, b, p = a%prime, b%prime, p[size:]
	}
	for _, value := range p {
		a += uint32(value)
		b += a
	}
	return b%prime<<16 | a%prime
}

// adlerAVX2 adds n bytes, a multiple of 32, to both sums.
//
//go:noescape
func adlerAVX2(p *byte, n int, a, b uint32) (a2, b2 uint32)
