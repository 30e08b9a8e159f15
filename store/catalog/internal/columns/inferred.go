package columns

import (
	"cmp"
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/budget"
)

// Inferred returns a column of strings as a text file would have it: numbers, if all strings are. Others stay as they
// are, without a copy in memory.
func Inferred(ctx context.Context, c *Column, want Want) (*Column, error) {
	if want == Skipped || want == Written {
		return c, nil
	}
	values, err := textsOf(ctx, c)
	if err != nil {
		return nil, err
	}
	inferred, err := infer(ctx, values, want)
	if err = cmp.Or(err, inferred.wrong); err != nil {
		return nil, err
	}
	if inferred.values.Kind() == tables.String {
		return c, nil
	}
	return InMemory(inferred.values), nil
}

// textsOf copies a column of strings.
func textsOf(ctx context.Context, c *Column) (*texts, error) {
	values, charged := newTexts(), 0
	err := c.Scan(ctx, func(_ int64, cell Cell) error {
		if len(values.data)+len(cell.Text) > maxCSV {
			return fault.New(fault.Limit, "column", fault.NoOffset, "over %d bytes", int64(maxCSV))
		}
		if cell.Null {
			cell.Text = nil
		}
		add(&values, cell.Text)
		if kept := len(values.data) + 4*len(values.offs); kept-charged > csvStep {
			charged = kept
			return budget.Grow(ctx, csvStep)
		}
		return nil
	})
	return &values, err
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

// Vector reads a column of integers, floats or strings.
func Vector(ctx context.Context, c *Column) (*tables.Vector, error) {
	var ints []int64
	var floats []float64
	nulls := make([]bool, c.rows)
	if c.Kind == column.Text {
		values, err := textsOf(ctx, Map(c, func(row int64, cell Cell) Cell {
			nulls[row] = cell.Null
			return cell
		}))
		if err != nil {
			return nil, err
		}
		values.null = nulls
		return values.strings(), nil
	}
	err := c.Scan(ctx, func(row int64, cell Cell) error {
		nulls[row] = cell.Null
		ints, floats = append(ints, cell.Int), append(floats, cell.Float)
		return nil
	})
	if c.Kind == column.Float {
		return tables.NewFloats(TypeOf(c), floats, nulls), err
	}
	return tables.NewInts(TypeOf(c), ints, nulls), err
}
