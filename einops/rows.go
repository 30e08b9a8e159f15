package einops

import (
	"math"

	"github.com/chaski-eo/chaski/internal/kernel"
)

// rowBytes is how many bytes of samples are converted at a time to several bands: they stay in a first-level cache
// of 32 KiB until all bands have been taken from them.
const rowBytes = 16 << 10

// ofRows reports whether kernel.Rows converts as the converter says.
func (cv *Converter) ofRows() bool {
	// Without arithmetic, a NaN of float32 stays as it is, bit for bit.
	arithmetic := cv.affine || cv.fromNum != kernel.F32 || cv.toNum != kernel.F32
	if cv.copies || cv.table != nil || !arithmetic {
		return false
	}
	if !kernel.RowsFrom(cv.fromNum) || !kernel.RowsTo(cv.toNum) {
		return false
	}
	for _, list := range cv.missing {
		if !kernel.RowsMatch(list) {
			return false
		}
	}
	return true
}

// asRows reports whether the rows of the box are converted by kernel.Rows: they are rows of the tensor, too. stride is
// the distance of these.
func (p *blockPlace) asRows(bands, rows *loop) (stride int, ok bool) {
	stride, same := rows.axis.stride()
	if !p.cv.rows || !same && rows.n > 1 || !p.runs.constant() || p.runs.stride != 1 ||
		!kernel.RowsFast(p.cv.fromNum, p.cv.toNum, p.strideX, p.w) {
		return 0, false
	}
	switch {
	case p.strideX == 1:
		return stride, bands.n == 1 || bands.outside(rows)
	case bands.n == 1:
		return stride, !p.gathers // a single band comes sooner by these
	default:
		return stride, bands.stride == 1
	}
}

// convertRows converts a box by kernel.Rows. stride is the distance of rows in the tensor, base the offset of its first
// element, first the index of the first sample.
func (p *blockPlace) convertRows(bands, rows loop, stride, base, first int) (nodata int) {
	cv := p.cv
	converter := kernel.Rows{From: cv.fromNum, To: cv.toNum, Clip: cv.clip, Lo: cv.lo, Hi: cv.hi,
		FillNoData: cv.fillNoData, Fill: cv.fillFloat, Past: p.stream}
	areaRows, together := rows.n, 1
	if p.strideX > 1 {
		together = kernel.Lanes
		areaRows = min(max(rowBytes/(p.w*p.strideX*cv.fromSize), 1), rows.n)
	}
	for row := 0; row < rows.n; row += areaRows {
		for band := 0; band < bands.n; band += together {
			area := kernel.RowArea{
				Bands: min(together, bands.n-band), Rows: min(areaRows, rows.n-row), Width: p.w, Step: p.strideX,
				First: first + row*rows.stride + band*bands.stride, Pitch: rows.stride, DstPitch: stride,
			}
			for k := range area.Bands {
				index := bands.first + band + k
				a, c := cv.band(index)
				if !cv.affine {
					c = float32(math.Copysign(0, -1)) // x + -0 is x for both zeros, too
				}
				p.setBand(index)
				converter.Band[k] = kernel.RowBand{A: a, C: c, Missing: p.missing}
				area.Dst[k] = base + bands.axis.offset(index) + rows.axis.offset(rows.first+row) + p.x0
			}
			nodata += converter.Convert(p.dst.Data, p.dst.Mask, p.src, area)
		}
	}
	return nodata
}
