package column

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/chaski-eo/chaski/internal/digest"
)

// Column has a value of one kind for each row of a table. It is safe for concurrent use.
type Column struct {
	Kind Kind
	// Unit is what the numbers of dates and timestamps count, else 0.
	Unit time.Duration
	// Bytes says that the values may be strings although the file does not mark them so, and Opaque that
	// they are other bytes.
	Bytes, Opaque bool

	Rows int64
	// Sums are the digests of the values, if the file of the column has them, else nil.
	Sums *Sums
	// Cell returns the value of a row. It is nil of columns that are scanned alone.
	Cell func(ctx context.Context, row int64) (Value, error)
	// Each does what Scan does, in less time than cell by cell; nil: it does not.
	Each func(ctx context.Context, visit Visit) error
}

// Sums are the digests of a column's values.
type Sums struct {
	// Values is the digest of the record of each value, as Value.Hash adds it; of URIs without Folder, the longest
	// beginning that ends in "/" and that all of them have. Below says that the values are URIs.
	Values [16]byte
	Folder []byte
	Below  bool
	// Repeats says that a value may come several times, of URIs that are known to differ it is false.
	Repeats bool
	// Sizes is the digest of the numbers alone, MaxUint64 for a null. OfSizes says that it is known.
	Sizes   [16]byte
	OfSizes bool
}

// Visit takes the value of a row. Its error ends a scan.
type Visit = func(row int64, v Value) error

// Scan visits the values of all rows in order, without keeping them in a cache. An error of visit ends it and is
// returned.
func (c *Column) Scan(ctx context.Context, visit Visit) error {
	if c.Each != nil {
		return c.Each(ctx, visit)
	}
	for row := range c.Rows {
		if row%4096 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		v, err := c.Cell(ctx, row)
		if err == nil {
			err = visit(row, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Of returns the column of the values that are in memory.
func Of(kind Kind, unit time.Duration, rows int64, value func(row int64) Value) *Column {
	return &Column{Kind: kind, Unit: unit, Rows: rows, Cell: func(_ context.Context, row int64) (Value, error) {
		return value(row), nil
	}}
}

// Texts is the column of texts that are in memory.
func Texts(texts []string) *Column {
	return Of(Text, 0, int64(len(texts)), func(row int64) Value { return Value{Text: []byte(texts[row])} })
}

// Ints is the column of numbers that are in memory.
func Ints(ints []int64) *Column {
	return Of(Int, 0, int64(len(ints)), func(row int64) Value { return Value{Int: ints[row]} })
}

// RowColumn is the column of the numbers of rows, from 0, that every table has which stores none of that name.
const RowColumn = "row"

// Numbers is the column of the numbers of so many rows.
func Numbers(rows int64) *Column {
	return Of(Int, 0, rows, func(row int64) Value { return Value{Int: row} })
}

// Nulls is a column of so many rows without a value.
func Nulls(rows int64) *Column {
	return Of(Text, 0, rows, func(int64) Value { return Value{Null: true} })
}

// Map returns a column of strings: what convert returns for the values of another column.
func Map(c *Column, convert func(row int64, v Value) Value) *Column {
	return &Column{
		Kind: Text, Rows: c.Rows,
		Cell: func(ctx context.Context, row int64) (Value, error) {
			v, err := c.Cell(ctx, row)
			return convert(row, v), err
		},
		Each: func(ctx context.Context, visit Visit) error {
			return c.Scan(ctx, func(row int64, v Value) error { return visit(row, convert(row, v)) })
		},
	}
}

// Join returns a column of strings: what text returns for the values of other columns with as many rows.
func Join(from []*Column, text func(values []Value) Value) *Column {
	joined := &Column{Kind: Text, Rows: from[0].Rows, Cell: func(ctx context.Context, row int64) (Value, error) {
		values := make([]Value, len(from))
		for i, c := range from {
			var err error
			if values[i], err = c.Cell(ctx, row); err != nil {
				return Value{}, err
			}
		}
		return text(values), nil
	}}
	if slices.ContainsFunc(from, func(c *Column) bool { return c.Each != nil }) {
		joined.Each = func(ctx context.Context, visit Visit) error {
			return scanTogether(ctx, from, func(row int64, values []Value) error { return visit(row, text(values)) })
		}
	}
	return joined
}

// errEnough stops a scan.
var errEnough = errors.New("column: enough")

// scanTogether visits the values of several columns in every row, in order.
func scanTogether(ctx context.Context, columns []*Column, visit func(row int64, values []Value) error) error {
	var failed error
	values := make([]Value, len(columns))
	next := make([]func() (int64, Value, bool), len(columns))
	for i, c := range columns[1:] {
		pull, stop := iter.Pull2(func(yield func(int64, Value) bool) {
			err := c.Scan(ctx, func(row int64, v Value) error {
				if !yield(row, v) {
					return errEnough
				}
				return nil
			})
			if failed == nil {
				failed = err
			}
		})
		defer stop()
		next[i+1] = pull
	}
	return columns[0].Scan(ctx, func(row int64, v Value) error {
		values[0] = v
		for i := 1; i < len(columns); i++ {
			var ok bool
			if _, values[i], ok = next[i](); !ok {
				return cmp.Or(failed, errEnough)
			}
		}
		return visit(row, values)
	})
}

// Pick returns the rows at of a column, in their order, null for a negative one; the column itself of nil, and nil of
// no column.
func Pick[T int32 | int64](c *Column, at []T) *Column {
	if c == nil || at == nil {
		return c
	}
	return &Column{Kind: c.Kind, Unit: c.Unit, Rows: int64(len(at)),
		Cell: func(ctx context.Context, row int64) (Value, error) {
			if at[row] < 0 {
				return Value{Null: true}, nil
			}
			return c.Cell(ctx, int64(at[row]))
		}}
}

// Concat returns the values of columns of one kind, one after the other.
func Concat(parts []*Column) *Column {
	begins := make([]int64, len(parts)+1)
	for i, part := range parts {
		begins[i+1] = begins[i] + part.Rows
	}
	return &Column{
		Kind: parts[0].Kind, Unit: parts[0].Unit, Rows: begins[len(parts)],
		Cell: func(ctx context.Context, row int64) (Value, error) {
			i := sort.Search(len(parts), func(i int) bool { return begins[i+1] > row })
			return parts[i].Cell(ctx, row-begins[i])
		},
		Each: func(ctx context.Context, visit Visit) error {
			for i, part := range parts {
				err := part.Scan(ctx, func(row int64, v Value) error { return visit(begins[i]+row, v) })
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// Hash adds a value of a kind as a record: its length and its bytes, which are 8 of a number; a list as the number of
// its elements and their records, and a null as the length 2^64-1 alone.
func (v Value) Hash(h digest.Digest, kind Kind) {
	switch {
	case v.Null:
		h.Number(math.MaxUint64)
	case kind.IsList():
		h.Number(uint64(len(v.List)))
		for _, element := range v.List {
			element.Hash(h, kind.Elem())
		}
	case kind == Int:
		h.Number(8)
		h.Number(uint64(v.Int))
	case kind == Float:
		h.Number(8)
		h.Number(math.Float64bits(v.Float))
	default:
		h.Record(v.Text)
	}
}
