package eval

import (
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query/internal/sql"
	"github.com/chaski-eo/chaski/format/tables/query/internal/vec"
)

// Row is a row of a batch as the functions of a row see it.
type Row struct {
	Args  []*tables.Vector
	Index int
}

// Bytes returns argument i, a string.
func (r Row) Bytes(i int) []byte { return r.Args[i].Bytes(r.Index) }

// Int returns argument i, an integer, date, time or timestamp.
func (r Row) Int(i int) int64 { return r.Args[i].Int(r.Index) }

// Float returns argument i, a float.
func (r Row) Float(i int) float64 { return r.Args[i].Float(r.Index) }

// nullsOf returns in which rows an argument is null; all reports that an argument is the literal NULL.
func nullsOf(n *Node, args []*tables.Vector) (nulls []bool, all bool) {
	for i, values := range args {
		if n.Args[i].Type.Kind == tables.Null {
			return nil, true
		}
		nulls = vec.EitherNull(nulls, values.Nulls())
	}
	return nulls, false
}

// texts returns the arguments that are strings.
func texts(args []*tables.Vector) (out []*tables.Vector) {
	for _, a := range args {
		if sql.RepOf(a.Type()) == sql.RepBytes {
			out = append(out, a)
		}
	}
	return out
}

// sizeAt returns the bytes of strings in a row.
func sizeAt(texts []*tables.Vector, k int) (n int) {
	for _, a := range texts {
		n += len(a.Bytes(k))
	}
	return n
}

// Ints makes an evaluation of a function of a row that returns an integer, date, time or timestamp.
var Ints = each(tables.NewInts)

// Floats makes an evaluation of a function of a row that returns a float.
var Floats = each(tables.NewFloats)

var bools = each(func(_ tables.Type, values, nulls []bool) *tables.Vector {
	return tables.NewBools(values, nulls)
})

// Bools makes an evaluation of a function of a row that returns a truth value.
func Bools(f func(n *Node, r Row) bool) Evaluation {
	return bools(func(n *Node, r Row) (bool, error) { return f(n, r), nil })
}

// each returns what makes an evaluation of a function of a row, whose results make a vector. The result is null where
// an argument is.
func each[T any](vector func(t tables.Type, values []T, nulls []bool) *tables.Vector) func(
	f func(n *Node, r Row) (T, error)) Evaluation {
	return func(f func(n *Node, r Row) (T, error)) Evaluation {
		return func(ev *Evaluator, n *Node, args []*tables.Vector, b *vec.Batch) (*tables.Vector, error) {
			nulls, allNull := nullsOf(n, args)
			if allNull {
				return tables.NewNulls(n.Type, b.N), nil
			}
			values, read := make([]T, b.N), texts(args)
			for row := range values {
				if nulls != nil && nulls[row] {
					continue
				}
				err := ev.Read(sizeAt(read, row))
				if err != nil {
					return nil, err
				}
				if values[row], err = f(n, Row{args, row}); err != nil {
					return nil, err
				}
			}
			return vector(n.Type, values, nulls), nil
		}
	}
}

// Strings makes an evaluation of a function of a row that writes a string.
func Strings(f func(w *vec.StringWriter, n *Node, r Row) error) Evaluation {
	return func(ev *Evaluator, n *Node, args []*tables.Vector, b *vec.Batch) (*tables.Vector, error) {
		nulls, allNull := nullsOf(n, args)
		if allNull {
			return tables.NewNulls(n.Type, b.N), nil
		}
		writer := ev.Strings(b.N)
		writer.Nulls = nulls
		read := texts(args)
		for row := range b.N {
			if (nulls == nil || !nulls[row]) && writer.Read(sizeAt(read, row)) {
				if err := f(writer, n, Row{args, row}); err != nil {
					return nil, err
				}
			}
			writer.End(row)
		}
		return writer.Finish()
	}
}
