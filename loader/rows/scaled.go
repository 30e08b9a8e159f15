package rows

import (
	"context"
	"fmt"
	"math"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/digest"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/store/catalog"
)

// linears are the scales and offsets of a field: a column for all bands, or one for each. Without columns a file's
// count.
type linears struct {
	scales, offsets []numberColumn
}

// numberColumn is a column of numbers.
type numberColumn struct {
	name   string
	values []float64 // by row, NaN for null
}

// scale gives rasters the scales and offsets that their fields have in columns. They are part of the fingerprint: a run
// with other ones is another run.
func (t *Table) scale(ctx context.Context, fields []spec.Field) error {
	known, hash := map[string]numberColumn{}, digest.New()
	_, _ = hash.WriteString(t.Fingerprint)
	read := func(names spec.Names) (out []numberColumn, err error) {
		for _, name := range names {
			column, ok := known[name]
			if !ok {
				if column, err = numbersOf(ctx, t, name); err != nil {
					return nil, err
				}
				known[name] = column
				for _, value := range column.values {
					hash.Number(math.Float64bits(value))
				}
			}
			out = append(out, column)
		}
		return out, nil
	}
	for i := range fields {
		field := &fields[i]
		if field.Scale == nil && field.Offset == nil || t.Fields[i].Kind != catalog.Raster {
			continue
		}
		var own linears
		var err error
		if own.scales, err = read(field.Scale); err == nil {
			own.offsets, err = read(field.Offset)
		}
		if err != nil {
			return InField(field.Name, err)
		}
		t.changeRasters(i, &own)
		t.Fingerprint = hash.Hex()
	}
	return nil
}

// numbersOf reads a column of numbers.
func numbersOf(ctx context.Context, t *Table, name string) (numberColumn, error) {
	if err := budget.Grow(ctx, 8*t.N); err != nil {
		return numberColumn{}, err
	}
	out := numberColumn{name, make([]float64, t.N)}
	return out, scanNumbers(ctx, t, name, func(row int64, v float64) { out.values[row] = v })
}

// ofAsset gives a raster the scales and offsets of its row.
func (l *linears) ofAsset(_ context.Context, a catalog.Asset, row int64) (_ catalog.Asset, err error) {
	index := *a.Index
	index.Physical, err = l.row(a.Index, row)
	a.Index = &index
	return a, fault.WithFile(err, a.URI)
}

// row returns Index.Physical of an image that is the raster of a row.
func (l *linears) row(x *chunk.Index, row int64) ([]chunk.Linear, error) {
	out := make([]chunk.Linear, x.StepBands())
	for band := range out {
		out[band] = x.Linear(band)
	}
	for _, c := range []struct {
		columns []numberColumn
		set     func(band int, value float64)
	}{
		{l.scales, func(band int, value float64) { out[band].Scale = value }},
		{l.offsets, func(band int, value float64) { out[band].Offset = value }},
	} {
		if n := len(c.columns); n > 1 && n != len(out) {
			return nil, fault.New(fault.Unsupported, "asset", "it has %d bands, and %d columns have "+
				"scales or offsets", len(out), n)
		}
		for band := range out {
			if len(c.columns) == 0 {
				break
			}
			column := &c.columns[min(band, len(c.columns)-1)]
			value := column.values[row]
			if math.IsNaN(value) || math.IsInf(value, 0) {
				return nil, fault.New(fault.Corrupt, fmt.Sprintf("column %q", column.name),
					"%v is no scale or offset", value)
			}
			c.set(band, value)
		}
	}
	return chunk.Linears(out), nil
}
