package einops

import (
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/kernel"
)

// Planar writes the rows of one band of a box past the caches, from residuals: see kernel.Planar.
type Planar struct {
	rows   kernel.Planar
	dst    []byte
	offset int // bytes of the next row's first element
	pitch  int // bytes from a row to the next one
}

// Planar returns what writes the rows of a box of one band, from the last one up if up is set. ok is false where
// Scatter is as fast, and for conversions that need it: of nodata, of masks and limits, and of other types.
func (p *Plan) Planar(dst Target, cv *Converter, box Box, up bool) (planar Planar, ok bool) {
	number := cv.fromNum == kernel.U16 || cv.fromNum == kernel.I16
	plain := dst.Mask == nil && !cv.noData && !cv.clip && cv.table == nil
	if p.check(dst, cv, box) || !kernel.PlanarFast() || len(dst.Data) < streamed {
		return planar, false
	}
	if !number || !plain || !p.runs.constant() || p.runs.stride != 1 {
		return planar, false
	}
	planar.rows = kernel.Planar{From: cv.fromNum, To: cv.toNum}
	switch {
	case cv.toNum == kernel.F32 && cv.affine:
		planar.rows.A, planar.rows.C = cv.band(box.B0)
	case !cv.copies:
		return planar, false
	}
	stride, same := p.axes[axisY].stride()
	size, rows := cv.toSize, box.Y1-box.Y0
	planar.dst, planar.pitch = dst.Data, stride*size
	first := p.axes[axisN].offset(box.N) + p.axes[axisT].offset(box.T) + p.axes[axisB].offset(box.B0) + box.X0
	planar.offset = (first + p.axes[axisY].offset(box.Y0)) * size
	row := (box.X1 - box.X0) * size
	lines := row%kernel.PlanarLine == 0 && planar.pitch%kernel.PlanarLine == 0 &&
		cast.ToLine(dst.Data[planar.offset:]) == 0
	if up {
		planar.offset, planar.pitch = planar.offset+(rows-1)*planar.pitch, -planar.pitch
	}
	return planar, box.B1-box.B0 == 1 && (same || rows == 1) && lines
}

// Put writes the next rows. above has the samples of the row above the first one; afterwards it has the samples of the
// last row. Call End after the last rows.
func (p *Planar) Put(above, residuals []byte) {
	rows := len(residuals) / len(above)
	p.rows.Convert(p.dst, p.offset, p.pitch, above, residuals, rows)
	p.offset += rows * p.pitch
}

// End completes the rows before all later writes.
func (p *Planar) End() { kernel.StreamEnd() }
