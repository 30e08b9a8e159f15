// Package columns reads the columns of the tables that datasets are made of: Parquet and CSV files, and listings.
package columns

import (
	"bytes"
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/turns"
	"github.com/chaski-eo/chaski/tables"
)

// Kind is the kind of a field of a sample.
type Kind uint8

// Kinds. All integers become 64-bit integers, and all floats float64.
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

// Value is the value of a metadata column, in the member that its field's Kind names. For a null all members are zero.
type Value struct {
	Int   int64
	Float float64
	Text  string
	Null  bool
}

// Cell is a Value whose string is bytes, which the caller must not change.
type Cell struct {
	Int   int64
	Float float64
	Text  []byte
	Null  bool
}

// Value copies the cell.
func (c Cell) Value() Value {
	return Value{Int: c.Int, Float: c.Float, Text: string(c.Text), Null: c.Null}
}

// Column is one column of a table. It is safe for concurrent use.
type Column interface {
	Kind() Kind
	// Cell returns a row's cell.
	Cell(ctx context.Context, row int64) (Cell, error)
	// Scan visits the cells of all rows in order, without keeping them in a cache. An error of
	// visit ends it and is returned.
	Scan(ctx context.Context, visit func(row int64, c Cell) error) error
}

// Table holds the columns that the fields of a dataset are made of.
type Table interface {
	Rows() int64
	// Column returns the column with a name. The error for a missing one lists the columns.
	Column(name string) (Column, error)
	Close() error
}

// memory is a column in memory.
type memory struct{ values *tables.Vector }

// InMemory returns the column of integers, timestamps, floats or strings that are in memory.
func InMemory(values *tables.Vector) Column { return memory{values} }

func (m memory) Kind() Kind {
	switch m.values.Kind() {
	case tables.String:
		return Text
	case tables.Float64:
		return Float
	}
	return Int
}

func (m memory) Cell(_ context.Context, row int64) (Cell, error) {
	i := int(row)
	cell := Cell{Null: m.values.Null(i)}
	switch m.values.Kind() {
	case tables.String:
		cell.Text = m.values.Bytes(i)
	case tables.Float64:
		cell.Float = m.values.Float(i)
	default:
		cell.Int = m.values.Int(i)
	}
	return cell, nil
}

func (m memory) Scan(ctx context.Context, visit func(int64, Cell) error) error {
	return scanMemory(ctx, m, int64(m.values.Len()), visit)
}

func scanMemory(ctx context.Context, c Column, n int64, visit func(int64, Cell) error) error {
	for row := range n {
		if row%4096 == 0 {
			if err := turns.Tick(ctx); err != nil {
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

// StringList is the column of paths of a listing.
type StringList []string

func (p StringList) Kind() Kind { return Text }
func (p StringList) Cell(_ context.Context, row int64) (Cell, error) {
	return Cell{Text: []byte(p[row])}, nil
}
func (p StringList) Scan(ctx context.Context, visit func(int64, Cell) error) error {
	return scanMemory(ctx, p, int64(len(p)), visit)
}

// mapped is a column of strings that are made of another column's cells.
type mapped struct {
	Column
	convert func(row int64, c Cell) Cell
}

// Map returns a column of strings: what convert returns for the cells of another column.
func Map(c Column, convert func(row int64, c Cell) Cell) Column { return mapped{c, convert} }

func (m mapped) Kind() Kind { return Text }

func (m mapped) Cell(ctx context.Context, row int64) (Cell, error) {
	c, err := m.Column.Cell(ctx, row)
	return m.convert(row, c), err
}

func (m mapped) Scan(ctx context.Context, visit func(int64, Cell) error) error {
	return m.Column.Scan(ctx, func(row int64, c Cell) error { return visit(row, m.convert(row, c)) })
}

// Nulls is a column of so many rows without a value.
type Nulls int64

func (n Nulls) Kind() Kind                                { return Text }
func (n Nulls) Cell(context.Context, int64) (Cell, error) { return Cell{Null: true}, nil }
func (n Nulls) Scan(ctx context.Context, visit func(int64, Cell) error) error {
	return scanMemory(ctx, n, int64(n), visit)
}

// Folders returns the column of the names of the folders that hold the files of a column of paths or URIs: "forest"
// of "eurosat/forest/1.tif", "" of "1.tif".
func Folders(paths Column) Column {
	return Map(paths, func(_ int64, c Cell) Cell {
		c.Text = folderOf(c.Text)
		return c
	})
}

// folderOf returns the part of a path between its last two slashes. The query of a URL may have slashes, too.
func folderOf(path []byte) []byte {
	if bytes.HasPrefix(path, []byte("http://")) || bytes.HasPrefix(path, []byte("https://")) {
		path, _, _ = bytes.Cut(path, []byte{'?'})
	}
	pos := bytes.LastIndexByte(path, '/')
	if pos < 0 {
		return nil
	}
	return path[bytes.LastIndexByte(path[:pos], '/')+1 : pos]
}

// picked is a column whose rows are some of another's, in another order.
type picked struct {
	Column
	at []int64
}

// Pick returns the rows at of a column, in their order; the column itself of nil, and nil of no column.
func Pick(c Column, at []int64) Column {
	if c == nil || at == nil {
		return c
	}
	return picked{c, at}
}

func (p picked) Cell(ctx context.Context, row int64) (Cell, error) {
	return p.Column.Cell(ctx, p.at[row])
}

func (p picked) Scan(ctx context.Context, visit func(int64, Cell) error) error {
	return scanMemory(ctx, p, int64(len(p.at)), visit)
}

// maxRows bounds the rows of a dataset: a few bytes of a Parquet file can claim millions of rows, each of which the
// fingerprint visits.
const maxRows = 1 << 32

// CheckRows refuses more rows than maxRows.
func CheckRows(n int64) error {
	if n > maxRows {
		return fault.New(fault.Limit, "dataset", fault.NoOffset, "%d rows, at most %d", n, int64(maxRows))
	}
	return nil
}
