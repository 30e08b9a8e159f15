package kernel

import (
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/scan"
)

// Planar makes elements of rows of samples, U16 or I16, that are stored as residuals of the planar prediction: what a
// sample is more than the ones to its left and above it, less the one between these, modulo 1<<16 and zigzag-mapped
// (0, -1, 1, -2, ... are 0, 1, 2, 3, ...). Samples outside the rows count as 0.
type Planar struct {
	From, To Num     // To is F32 or From
	A, C     float32 // of F32: see Rows
}

// PlanarLine is how many bytes of elements are written past the caches at a time: a line.
const PlanarLine = 64

// Convert makes elements of rows. above has the samples of the row above the first one; afterwards it has the samples
// of the last row. The elements of the first row begin at first in dst. Rows begin pitch bytes apart, which may be
// negative. Where all of them fill lines, they are written past the caches: call StreamEnd afterwards.
func (p *Planar) Convert(dst []byte, first, pitch int, above, residuals []byte, rows int) {
	if rows < 1 || p.convertSIMD(dst, first, pitch, above, residuals, rows) {
		return
	}
	for row := range rows {
		start := first + row*pitch
		p.row(dst[start:start+len(above)/2*p.To.Size()], above, residuals[row*len(above):][:len(above)])
	}
}

// row makes the elements of one row.
func (p *Planar) row(dst, above, residuals []byte) {
	samples, ok := cast.Of[uint16](above)
	mapped, ok2 := cast.Of[uint16](residuals)
	if ok && ok2 {
		scan.SumZigzagAbove(samples, mapped, samples)
	} else {
		planarBytes(above, residuals)
	}
	if p.To == p.From {
		copy(dst, above)
		return
	}
	var numbers [256]float32
	for len(above) > 0 {
		n := min(len(above)/2, len(numbers))
		LoadAffine(numbers[:n], above, p.From, 1, p.A, p.C)
		Store(dst, numbers[:n], p.To, 1)
		dst, above = dst[n*p.To.Size():], above[2*n:]
	}
}

// planarBytes is the byte-wise twin of scan.SumZigzagAbove.
func planarBytes(above, residuals []byte) {
	sum := uint16(0)
	for i := 0; i+2 <= len(above); i += 2 {
		mapped := le.Uint16(residuals[i:])
		sum += mapped>>1 ^ -(mapped & 1)
		le.PutUint16(above[i:], le.Uint16(above[i:])+sum)
	}
}
