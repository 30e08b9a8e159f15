package catalog

import (
	"context"

	"github.com/chaski-eo/chaski/fault"
)

// Kind is what a field of a sample is.
type Kind uint8

// Kinds. Integers are of 64 bits and floats float64, whatever the column has.
const (
	Raster Kind = iota + 1 // a path or URI
	Int
	Float
	Text // UTF-8
)

var kindNames = [...]string{"invalid", "raster", "int", "float", "text"}

// String returns "raster", "int", "float" or "text".
func (k Kind) String() string {
	if int(k) >= len(kindNames) {
		k = 0
	}
	return kindNames[k]
}

// Value is a value that rides along, in the member that its field's Kind names. Of a null all of them
// are zero.
type Value struct {
	Int   int64
	Float float64
	Text  string
	Null  bool
}

// cell is a Value whose text is bytes. The bytes must not be changed.
type cell struct {
	int   int64
	float float64
	text  []byte
	null  bool
}

func (c cell) value() Value {
	return Value{Int: c.int, Float: c.float, Text: string(c.text), Null: c.null}
}

// column is one column of a table. It is safe for concurrent use.
type column interface {
	kind() Kind
	// cell returns a row's cell.
	cell(ctx context.Context, row int64) (cell, error)
	// scan visits the cells of all rows in order, and nothing of it stays in a cache. An error of
	// visit ends it and is returned.
	scan(ctx context.Context, visit func(row int64, c cell) error) error
}

// table is what the fields of a dataset are made of.
type table interface {
	rows() int64
	// column returns the column with a name; an error lists those that there are.
	column(name string) (column, error)
	close() error
}

// texts is a column in memory: n texts, one after the other, in one slice of bytes.
type texts struct {
	data []byte
	ends []uint64
	null []bool // nil: none
}

func (t *texts) at(row int64) []byte {
	start := uint64(0)
	if row > 0 {
		start = t.ends[row-1]
	}
	return t.data[start:t.ends[row]:t.ends[row]]
}

func (t *texts) kind() Kind { return Text }

func (t *texts) cell(_ context.Context, row int64) (cell, error) {
	return cell{text: t.at(row), null: t.null != nil && t.null[row]}, nil
}

func (t *texts) scan(ctx context.Context, visit func(int64, cell) error) error {
	return scanMemory(ctx, t, int64(len(t.ends)), visit)
}

func scanMemory(ctx context.Context, c column, n int64, visit func(int64, cell) error) error {
	for row := range n {
		if row%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		v, err := c.cell(ctx, row)
		if err == nil {
			err = visit(row, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// paths is a listing's column of paths.
type paths []string

func (p paths) kind() Kind { return Text }
func (p paths) cell(_ context.Context, row int64) (cell, error) {
	return cell{text: []byte(p[row])}, nil
}
func (p paths) scan(ctx context.Context, visit func(int64, cell) error) error {
	return scanMemory(ctx, p, int64(len(p)), visit)
}

// ints is a column of integers in memory.
type ints struct {
	v    []int64
	null []bool
}

func (s ints) kind() Kind { return Int }
func (s ints) cell(_ context.Context, row int64) (cell, error) {
	return cell{int: s.v[row], null: s.null != nil && s.null[row]}, nil
}
func (s ints) scan(ctx context.Context, visit func(int64, cell) error) error {
	return scanMemory(ctx, s, int64(len(s.v)), visit)
}

// floats is a column of numbers in memory.
type floats struct {
	v    []float64
	null []bool
}

func (s floats) kind() Kind { return Float }
func (s floats) cell(_ context.Context, row int64) (cell, error) {
	return cell{float: s.v[row], null: s.null != nil && s.null[row]}, nil
}
func (s floats) scan(ctx context.Context, visit func(int64, cell) error) error {
	return scanMemory(ctx, s, int64(len(s.v)), visit)
}

// picked is a column whose rows are others' in a new order.
type picked struct {
	column
	at []int64
}

func (p picked) cell(ctx context.Context, row int64) (cell, error) {
	return p.column.cell(ctx, p.at[row])
}

func (p picked) scan(ctx context.Context, visit func(int64, cell) error) error {
	return scanMemory(ctx, p, int64(len(p.at)), visit)
}

// maxRows bounds N: a few bytes of a Parquet file can stand for millions of rows, each of which the
// fingerprint visits.
const maxRows = 1 << 32

func checkRows(n int64) error {
	if n > maxRows {
		return fault.New(fault.Limit, "dataset", fault.NoOffset, "%d rows, at most %d", n, int64(maxRows))
	}
	return nil
}
