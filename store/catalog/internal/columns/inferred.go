package columns

import (
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/texts"
	"github.com/chaski-eo/chaski/internal/budget"
)

// Inferred returns a column of strings as a text file would have it: numbers, if all strings are. Others stay as they
// are, without a copy in memory.
func Inferred(ctx context.Context, c *Column, want texts.Want) (*Column, error) {
	if want == texts.Skipped || want == texts.Written {
		return c, nil
	}
	values, err := Vector(ctx, c)
	if err == nil {
		values, err = texts.Infer(ctx, values, want, false)
	}
	if err != nil {
		return nil, err
	}
	if values.Kind() == tables.String {
		return c, nil
	}
	return values.Column("")
}

// TypeOf returns the type of a column of integers, floats or strings.
func TypeOf(c *Column) tables.Type {
	switch c.Kind {
	case column.Int:
		return tables.Type{Kind: tables.Int64, Bits: 64}
	case column.Float:
		return tables.Type{Kind: tables.Float64, Bits: 64}
	}
	return tables.Type{Kind: tables.String}
}

// textStep is how many bytes of strings are charged at a time.
const textStep = 1 << 20

// Vector reads a column of integers, floats or strings.
func Vector(ctx context.Context, c *Column) (*tables.Vector, error) {
	var ints []int64
	var floats []float64
	var data []byte
	offs, charged := []uint32{0}, 0
	nulls := make([]bool, c.Rows)
	err := c.Scan(ctx, func(row int64, cell column.Value) error {
		nulls[row] = cell.Null
		switch {
		case c.Kind == column.Int:
			ints = append(ints, cell.Int)
			return nil
		case c.Kind == column.Float:
			floats = append(floats, cell.Float)
			return nil
		case len(data)+len(cell.Text) > texts.MaxBytes:
			return fault.New(fault.Limit, "column", "over %d bytes", int64(texts.MaxBytes))
		case !cell.Null:
			data = append(data, cell.Text...)
		}
		offs = append(offs, uint32(len(data)))
		if kept := len(data) + 4*len(offs); kept-charged > textStep {
			charged = kept
			return budget.Grow(ctx, textStep)
		}
		return nil
	})
	switch c.Kind {
	case column.Int:
		return tables.NewInts(TypeOf(c), ints, nulls), err
	case column.Float:
		return tables.NewFloats(TypeOf(c), floats, nulls), err
	}
	return tables.NewBytes(TypeOf(c), data, offs, nulls), err
}
