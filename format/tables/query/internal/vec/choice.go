package vec

import (
	"slices"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query/internal/sql"
)

// rowChoice collects the value of each row of a batch: value At[k] of From[k], null if that is nil.
type rowChoice struct {
	typ  tables.Type
	From []*tables.Vector
	At   []int32
}

// NewChoice returns n values of a type that are all null.
func NewChoice(t tables.Type, n int) *rowChoice {
	return &rowChoice{typ: t, From: make([]*tables.Vector, n), At: make([]int32, n)}
}

// Take chooses the values of v for some rows, or for all if rows is nil.
func (c *rowChoice) Take(v *tables.Vector, rows []int32) {
	for pos := range v.Len() {
		row := pos
		if rows != nil {
			row = int(rows[pos])
		}
		if !v.Null(pos) {
			c.From[row], c.At[row] = v, int32(pos)
		}
	}
}

// Build returns the values. It writes strings to the writer that newWriter returns.
func (c *rowChoice) Build(newWriter func(n int) *StringWriter) (*tables.Vector, error) {
	if sql.RepOf(c.typ) == sql.RepBytes {
		writer := newWriter(len(c.From))
		writer.Type = c.typ
		for row, choice := range c.From {
			if choice == nil {
				writer.AddNull(row)
				continue
			}
			writer.Add(choice.Bytes(int(c.At[row])))
			writer.End(row)
		}
		return writer.Finish()
	}
	nulls := make([]bool, len(c.From))
	var nanos []int64
	for row, choice := range c.From {
		nulls[row] = choice == nil
	}
	if slices.ContainsFunc(c.From, func(v *tables.Vector) bool { return v != nil && v.Nanos() != nil }) {
		nanos = picked(c, (*tables.Vector).Nanos)
	}
	switch {
	case sql.RepOf(c.typ) == sql.RepNone:
		return tables.NewNulls(c.typ, len(c.From)), nil
	case sql.RepOf(c.typ) == sql.RepFloat:
		return tables.NewFloats(c.typ, picked(c, (*tables.Vector).Floats), nulls), nil
	case c.typ.Kind == tables.Bool:
		return tables.NewBools(picked(c, (*tables.Vector).Bools), nulls), nil
	}
	return tables.NewWide(c.typ, picked(c, (*tables.Vector).Ints), nanos, nulls), nil
}

// picked returns the numbers of the values, 0 of nulls and where a vector has none.
func picked[T any](c *rowChoice, numbers func(v *tables.Vector) []T) []T {
	out := make([]T, len(c.From))
	for row, choice := range c.From {
		if choice == nil {
			continue
		}
		if from := numbers(choice); from != nil {
			out[row] = from[c.At[row]]
		}
	}
	return out
}
