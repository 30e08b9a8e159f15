package columns

import (
	"slices"

	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tiff"
)

// scales returns the factor and the offset of each of n bands, nil if no band has one. value = sample·factor + offset.
func scales(bands []tiff.Band, n int) (factors, offsets []float64) {
	some := false
	for i := range bands {
		band := &bands[i]
		factor, offset := 1.0, 0.0
		if band.Scale != nil && *band.Scale != 0 {
			factor = *band.Scale
		}
		if band.Offset != nil {
			offset = *band.Offset
		}
		some = some || factor != 1 || offset != 0
		factors, offsets = append(factors, factor), append(offsets, offset)
	}
	if !some || len(factors) != n {
		return nil, nil
	}
	return factors, offsets
}

// scale brings the moments and percentiles to the scale of the values, as the text of the extension wants where there
// are columns of scaling: the standard deviation has no offset, the share of valid pixels stays, and so do classes.
func (r *Raster) scale(classes bool) {
	if r.factors == nil || classes {
		return
	}
	for b, band := range r.Stats {
		factor := r.factors[b]
		for i := range band {
			switch i {
			case 3: // standard deviation
				band[i] *= max(factor, -factor)
			case 4: // percentage of valid pixels
			default:
				band[i] = float64(band[i]*factor) + r.offsets[b]
			}
		}
		if factor < 0 {
			band[0], band[1] = band[1], band[0]
		}
	}
}

// scaling returns what makes the column of factors or offsets: one number for each row if all bands of each raster have
// the same of both, else lists.
func scaling(of func(factors, offsets []float64) []float64) func(rasters []*Raster) *tables.Vector {
	return func(rasters []*Raster) *tables.Vector {
		column := func(n int, values func(i int) []float64) *tables.Vector { return single(float32Type, n, values) }
		for _, r := range rasters {
			if r != nil && (!same(r.factors) || !same(r.offsets)) {
				column = float32s
			}
		}
		return each(column, func(r *Raster) []float64 { return of(r.factors, r.offsets) })(rasters)
	}
}

// same reports whether all numbers are equal.
func same(numbers []float64) bool { return len(slices.Compact(slices.Clone(numbers))) <= 1 }
