package vec

import (
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query/internal/sql"
)

// rowChoice collects the value of each row of a batch: value At[k] of From[k], null if that is nil.
type rowChoice struct {
	typ  tables.Type
	From []*Vec
	At   []int32
}

// NewChoice returns n values of a type that are all null.
func NewChoice(t tables.Type, n int) *rowChoice {
	return &rowChoice{typ: t, From: make([]*Vec, n), At: make([]int32, n)}
}

// Take chooses the values of v for some rows, or for all if rows is nil.
func (c *rowChoice) Take(v *Vec, rows []int32) {
	for pos := range v.N {
		row := pos
		if rows != nil {
			row = int(rows[pos])
		}
		if !v.IsNull(pos) {
			c.From[row], c.At[row] = v, int32(pos)
		}
	}
}

// Build returns the values. It writes strings to the writer that newWriter returns.
func (c *rowChoice) Build(newWriter func(n int) *StringWriter) (*Vec, error) {
	if sql.RepOf(c.typ) == sql.RepBytes {
		writer := newWriter(len(c.From))
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
	values := AllNull(c.typ, len(c.From))
	for row, choice := range c.From {
		if choice != nil {
			values.Nulls[row] = false
			values.set(row, choice, int(c.At[row]), c.typ)
		}
	}
	return values, nil
}
