package columns

import "github.com/chaski-eo/chaski/tables"

// scales returns the factor and the offset of each band, nil if no band has one. value = sample·factor + offset.
func (r *raster) scales() (factors, offsets []float64) {
	if r == nil {
		return nil, nil
	}
	some := false
	for i := range r.bands {
		band := &r.bands[i]
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
	if !some || len(factors) != r.Shape[0] {
		return nil, nil
	}
	return factors, offsets
}

// scale brings the moments and percentiles to the scale of the values, as the text of the extension wants where there
// are columns of scaling: the standard deviation has no offset, the share of valid pixels stays, and so do classes.
func (r *raster) scale(classes bool) {
	factors, offsets := r.scales()
	if factors == nil || classes {
		return
	}
	for b, band := range r.Stats {
		for i := range band {
			switch i {
			case 3: // standard deviation
				band[i] *= max(factors[b], -factors[b])
			case 4: // percentage of valid pixels
			default:
				band[i] = float64(band[i]*factors[b]) + offsets[b]
			}
		}
		if factors[b] < 0 {
			band[0], band[1] = band[1], band[0]
		}
	}
}

// scaling adds the columns of scaling: one number for each row if all bands of each raster have the same, else lists.
// Padding is null: no raster says that it has any.
func (c *Set) scaling(n int, of func(i int) *raster) {
	same := true
	factors, offsets := make([][]float64, n), make([][]float64, n)
	for i := range n {
		factors[i], offsets[i] = of(i).scales()
		for b := range factors[i] {
			same = same && factors[i][b] == factors[i][0] && offsets[i][b] == offsets[i][0]
		}
	}
	for _, column := range []struct {
		name   string
		values [][]float64
	}{{scaleFactor, factors}, {scaleOffset, offsets}} {
		if !same {
			c.Add(column.name, listOf(float32s, n, func(i int) []float64 { return column.values[i] }))
			continue
		}
		unit, none := make([]float64, n), make([]bool, n)
		for i, v := range column.values {
			if none[i] = v == nil; v != nil {
				unit[i] = v[0]
			}
		}
		c.Add(column.name, tables.NewFloats(float32Type, unit, none))
	}
	int32Type := tables.Type{Kind: tables.Int64, Bits: 32}
	c.Add(scalePadding, tables.NewNulls(tables.Type{Kind: tables.List, Elem: &int32Type}, n))
}
