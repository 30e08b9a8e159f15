package duckdb

import (
	"errors"
	"fmt"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tables"
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
	Open   *string     // the columns of the table with this name are wanted
	Column *cell       // the values of a column are wanted
	Head   []string    // the result's names of columns, each of which follows as Part
	Part   *wireVector // a column of the result
	Done   bool        // nothing follows
	Fault  *failure    // the query failed
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
	Values  *wireVector
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

// wireVector is a tables.Vector with exported parts.
type wireVector struct {
	Type     tables.Type
	N        int
	Nulls    []bool
	Ints     []int64 // also the low halves of Decimal
	High     []int64 // high halves, or nanoseconds of timestamps
	Floats   []float64
	Data     []byte
	Offsets  []uint32
	Children []*wireVector
}

func wireOf(v *tables.Vector) *wireVector {
	w := &wireVector{Type: v.Type(), N: v.Len(), Nulls: v.Nulls()}
	switch w.Type.Kind {
	case tables.Null:
	case tables.Float64:
		w.Floats = v.Floats()
	case tables.String, tables.Binary:
		w.Data, w.Offsets = v.Raw()
	case tables.List:
		var child *tables.Vector
		child, w.Offsets = v.Offsets()
		w.Children = []*wireVector{wireOf(child)}
	case tables.Struct:
		for k := range w.Type.Fields {
			w.Children = append(w.Children, wireOf(v.Field(k)))
		}
	case tables.Decimal:
		w.Ints, w.High = v.Ints(), v.High()
	default:
		w.Ints, w.High = v.Ints(), v.Nanos()
	}
	return w
}

// errWire is returned for a message that does not fit together: the process that ran the query is not trusted.
var errWire = errors.New("duckdb: a message of the query's process does not fit together")

// value checks a vector of another process. Nested types have at most depth levels.
func (w *wireVector) value(depth int) (*tables.Vector, error) {
	if w == nil || w.N < 0 || depth < 0 || w.Nulls != nil && len(w.Nulls) != w.N {
		return nil, errWire
	}
	switch w.Type.Kind {
	case tables.Null:
		return tables.NewNulls(w.Type, w.N), nil
	case tables.Float64:
		if len(w.Floats) != w.N {
			return nil, errWire
		}
		return tables.NewFloats(w.Type, notNil(w.Floats), w.Nulls), nil
	case tables.String, tables.Binary:
		if !w.offsetsTo(len(w.Data)) {
			return nil, errWire
		}
		return tables.NewBytes(w.Type, w.Data, w.Offsets, w.Nulls), nil
	case tables.List:
		if len(w.Children) != 1 {
			return nil, errWire
		}
		child, err := w.Children[0].value(depth - 1)
		if err != nil || !w.offsetsTo(child.Len()) {
			return nil, errors.Join(errWire, err)
		}
		return tables.NewList(child, w.Offsets, w.Nulls), nil
	case tables.Struct:
		return w.structure(depth)
	case tables.Decimal:
		if len(w.Ints) != w.N || len(w.High) != w.N {
			return nil, errWire
		}
		return tables.NewBigs(w.Type, notNil(w.Ints), notNil(w.High), w.Nulls), nil
	case tables.Bool, tables.Int64, tables.Uint64, tables.Timestamp, tables.Date, tables.Time:
		if len(w.Ints) != w.N || w.High != nil && len(w.High) != w.N {
			return nil, errWire
		}
		if w.High != nil {
			return tables.NewTimes(w.Type, w.Ints, w.High, w.Nulls), nil
		}
		return tables.NewInts(w.Type, notNil(w.Ints), w.Nulls), nil
	}
	return nil, fmt.Errorf("%w: type %v", errWire, w.Type.Kind)
}

func (w *wireVector) structure(depth int) (*tables.Vector, error) {
	if len(w.Children) != len(w.Type.Fields) || len(w.Children) == 0 {
		return nil, errWire
	}
	var names []string
	var fields []*tables.Vector
	for k, c := range w.Children {
		v, err := c.value(depth - 1)
		if err != nil || v.Len() != w.N {
			return nil, errors.Join(errWire, err)
		}
		names, fields = append(names, w.Type.Fields[k].Name), append(fields, v)
	}
	return tables.NewStruct(names, fields, w.Nulls), nil
}

// offsetsTo reports whether there are N+1 rising offsets, from 0 to at most end.
func (w *wireVector) offsetsTo(end int) bool {
	n := len(w.Offsets)
	return n == w.N+1 && w.Offsets[0] == 0 && slices.IsSorted(w.Offsets) && int64(w.Offsets[n-1]) <= int64(end)
}

// notNil returns an empty slice for nil: gob does not tell them apart.
func notNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
