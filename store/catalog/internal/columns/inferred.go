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
		return tables.Ints
	case column.Float:
		return tables.Floats
	}
	return tables.Strings
}

const (
	chargeStep = 1 << 20 // bytes of values that are charged at a time
	valueBytes = 8       // of a value, beside its string
)

// Vector reads a column of integers, floats or strings.
func Vector(ctx context.Context, c *Column) (*tables.Vector, error) {
	return vectorOf(ctx, c, TypeOf(c))
}

// vectorOf reads a column of values of a type.
func vectorOf(ctx context.Context, c *Column, typ tables.Type) (*tables.Vector, error) {
	out, held, free := tables.NewAppender(typ), int64(0), int64(0) // bytes charged, and how many of them are free
	err := c.Scan(ctx, func(_ int64, v column.Value) error {
		size := valueBytes + int64(len(v.Text))
		for i := range v.List {
			size += valueBytes + int64(len(v.List[i].Text))
		}
		if free -= size; free < 0 {
			step := max(chargeStep, size)
			if held += step; held > texts.MaxBytes {
				return fault.New(fault.Limit, "column", "over %d bytes", int64(texts.MaxBytes))
			}
			if err := budget.Grow(ctx, step); err != nil {
				return err
			}
			free += step
		}
		out.AddValue(&v)
		return nil
	})
	return out.Vector(), err
}
