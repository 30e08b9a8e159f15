package duckdb

import (
	"bytes"
	"context"
	"errors"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/encode"
)

// The messages between a process and the one that runs a query for it, as gob streams. The child asks for tables and
// columns while the query runs, and ends with its result, so that no column is sent that the query does not use.

// job is the first message to the child.
type job struct {
	Query  string
	Names  []string
	Memory int64 // bytes
}

// fromChild is a message of the child: exactly one of its parts is set.
type fromChild struct {
	Open   *string  // the columns of the table with this name are wanted
	Column *cell    // the values of a column are wanted
	Head   []string // the names of the result's columns; each follows as a Part
	Part   []byte   // a column of the result, see encoded
	Done   bool     // nothing follows
	Fault  *failure // the query failed
}

// cell names a column of a table.
type cell struct {
	Table string
	Index int
}

// toChild answers a question of the child.
type toChild struct {
	Rows    int
	Columns []tables.Column
	Values  []byte // see encoded
	Fault   *failure
}

// failure is an error on its way between two processes.
type failure struct {
	Kind       fault.Kind
	File, Part string
	Off        int64
	Text       string
}

func newFailure(err error) *failure {
	var f *fault.Error
	if errors.As(err, &f) {
		return &failure{Kind: f.Kind, File: f.File, Part: f.Part, Off: f.Off, Text: f.Msg}
	}
	return &failure{Text: err.Error()}
}

func (f *failure) err() error {
	if f.Kind < fault.Corrupt || f.Kind > fault.NotFound {
		return errors.New(f.Text)
	}
	return &fault.Error{Kind: f.Kind, File: f.File, Part: f.Part, Off: f.Off, Msg: f.Text}
}

// encoded returns a column as a Parquet file, which the other process reads as it reads files that are not trusted.
func encoded(ctx context.Context, v *tables.Vector) ([]byte, error) {
	var b bytes.Buffer
	err := encode.Table(ctx, &b, tables.FromVectors([]string{"values"}, []*tables.Vector{v}))
	return b.Bytes(), err
}

// decoded returns the column that encoded wrote.
func decoded(ctx context.Context, data []byte) (*tables.Vector, error) {
	t, err := tables.Parse(ctx, data, tables.Options{})
	if err != nil {
		return nil, err
	}
	if len(t.Columns()) != 1 {
		return nil, errWire
	}
	return t.At(ctx, 0)
}

// errWire is returned for a message that does not fit: the process that ran the query is not trusted.
var errWire = errors.New("duckdb: a message of the query's process does not fit")
