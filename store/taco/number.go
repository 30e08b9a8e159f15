package taco

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/budget"
)

// PoolNumber pools one number of geotiff:stats over rows of a level, by band, as tacoreader does: "min", "max", "mean",
// "std", "valid" (the percentage of pixels), "p25", "p50", "p75" or "p95" of measurements, or "categorical", the share
// of each class of a band. Rows without statistics are skipped.
//
// The weight w of a row is rows × columns of stac:tensor_shape, or 1 if its shape is not known: mean = Σwm/Σw, and the
// deviation is a sample's, √((Σ(w−1)s² + Σw(m−mean)²)/(Σw−1)). The percentiles of all pixels do not follow from
// the rows' percentiles: "p25" and so on are the means of the rows' percentiles. NaN in a row gives NaN.
func (d *Dataset) PoolNumber(ctx context.Context, level int, rows []int, number string) ([][]float64, error) {
	pooled := numberPool{number: number, at: slices.Index(geotiffNames[:], number)}
	if pooled.at < 0 && number != "categorical" {
		return nil, fmt.Errorf("number is %q: it must be categorical or one of %s", number,
			strings.Join(geotiffNames[:], ", "))
	}
	table, err := d.Level(ctx, level)
	if err != nil {
		return nil, err
	}
	if err := pooled.rows(ctx, table, rows); err != nil {
		return nil, d.inLevel(err, level)
	}
	out := make([][]float64, len(pooled.bands))
	for b, values := range pooled.bands {
		for _, v := range values {
			out[b] = append(out[b], v.value(number))
		}
	}
	return out, nil
}

// numberPool pools one number of rows.
type numberPool struct {
	number string
	at     int // of the number in geotiffNames, or -1 for classes

	bands [][]pooledNumber // of a band one value, or one for each class
}

func (p *numberPool) rows(ctx context.Context, t *tables.Table, rows []int) error {
	stats, err := geotiffStats(ctx, t)
	if err != nil {
		return err
	}
	var shapes *tables.Vector
	if t.Index(shapeColumns[0]) >= 0 {
		if shapes, err = lists(ctx, t, shapeColumns[0]); err != nil {
			return err
		}
	}
	for _, row := range rows {
		if stats.Null(row) {
			continue
		}
		w := 1.0
		if shapes != nil {
			if s, ok := numbers(shapes, row); ok && len(s) > 1 {
				w = s[len(s)-2] * s[len(s)-1]
			}
		}
		if err := p.row(ctx, stats, row, w); err != nil {
			return fault.WithPart(err, fmt.Sprintf("row %d", row), fault.NoOffset)
		}
	}
	if p.bands == nil {
		return fault.New(fault.NotFound, "column "+geotiffColumn, fault.NoOffset, "no row has statistics")
	}
	return nil
}

// row adds the bands of a row with weight w.
func (p *numberPool) row(ctx context.Context, stats *tables.Vector, row int, w float64) error {
	bad := func(k fault.Kind, format string, args ...any) error {
		return fault.New(k, "column "+geotiffColumn, fault.NoOffset, format, args...)
	}
	bands, lo, hi := stats.List(row)
	if p.bands == nil && hi > lo {
		if err := budget.Grow(ctx, int64(hi-lo)*bandBytes); err != nil {
			return err
		}
		p.bands = make([][]pooledNumber, hi-lo)
	}
	if hi > lo && hi-lo != len(p.bands) {
		return bad(fault.Unsupported, "%d bands, but earlier rows have %d", hi-lo, len(p.bands))
	}
	for i := lo; i < hi; i++ {
		_, first, last := bands.List(i)
		count, band := last-first, &p.bands[i-lo]
		if p.at >= 0 && count != geotiffNumbers {
			return bad(fault.Unsupported, "band %d has %d numbers, but of measurements it has %d", i-lo, count,
				geotiffNumbers)
		}
		if p.at < 0 && count == geotiffNumbers {
			return bad(fault.Unsupported, "band %d has %d numbers, which are of measurements, not of classes", i-lo,
				count)
		}
		if *band != nil && p.at < 0 && len(*band) != count {
			return bad(fault.Unsupported, "band %d has %d classes, but in earlier rows %d", i-lo, count, len(*band))
		}
		if *band == nil {
			if err := budget.Grow(ctx, int64(count)*classBytes); err != nil {
				return err
			}
		}
		values, ok := numbers(bands, i)
		if !ok {
			return bad(fault.Corrupt, "band %d has nulls", i-lo)
		}
		var s float64
		switch {
		case p.number == "std":
			values, s = values[2:3], values[3]
		case strings.HasPrefix(p.number, "p"):
			values, w = values[p.at:p.at+1], 1
		case p.at >= 0:
			values = values[p.at : p.at+1]
		}
		if *band == nil {
			*band = make([]pooledNumber, len(values))
		}
		for k := range values {
			v := &(*band)[k]
			if v.n++; v.n == 1 {
				v.least, v.most = values[k], values[k]
			}
			v.least, v.most = min(v.least, values[k]), max(v.most, values[k])
			v.add(w, values[k], s)
		}
	}
	return nil
}

// bandBytes is the memory of a band beside its classes: the slices of its values here, in PoolNumber and in a server's
// answer, 24 bytes each, and the smallest allocation for such an answer.
const bandBytes = 3*24 + 8

// classBytes is the memory of a class of a band, or of the one value of measurements: 56 bytes as such, 8 in the
// row that is added, 8 in the result of PoolNumber and 4 in a server's answer, these three twice, because slices that
// grow are copied. A file of some KiB can hold tens of millions of equal shares.
const classBytes = 56 + 2*(8+8+4)

// pooledNumber pools one number of a band.
type pooledNumber struct {
	moments

	n           int
	least, most float64
}

func (v *pooledNumber) value(number string) float64 {
	switch number {
	case "min":
		return v.least
	case "max":
		return v.most
	case "std":
		return v.deviation(1)
	}
	return v.average()
}
