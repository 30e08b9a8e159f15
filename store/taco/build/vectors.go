package build

import (
	"context"

	"github.com/chaski-eo/chaski/tables"
)

// Types of columns.
var (
	int64Type   = tables.Type{Kind: tables.Int64, Bits: 64}
	float64Type = tables.Type{Kind: tables.Float64, Bits: 64}
)

// columns are columns in memory, with the types that they are stored in.
type columns struct {
	cols    []tables.Column
	vectors []*tables.Vector
}

// add adds a column, and returns the columns.
func (c *columns) add(name string, v *tables.Vector) *columns { return c.addAs(name, v.Type(), v) }

// addAs adds a column that is stored in a type.
func (c *columns) addAs(name string, t tables.Type, v *tables.Vector) *columns {
	c.cols, c.vectors = append(c.cols, tables.Column{Name: name, Type: t}), append(c.vectors, v)
	return c
}

// table returns the columns as a table of n rows.
func (c *columns) table(n int) *tables.Table {
	return tables.New(n, c.cols, func(_ context.Context, i int) (*tables.Vector, error) { return c.vectors[i], nil })
}

// integers returns n values of a type.
func integers(t tables.Type, n int, value func(i int) int64) *tables.Vector {
	values := make([]int64, n)
	for i := range values {
		values[i] = value(i)
	}
	return tables.NewInts(t, values, nil)
}

// Texts returns n strings; "" is null.
func Texts(n int, value func(i int) string) *tables.Vector {
	texts, none := make([]string, n), make([]bool, n)
	for i := range n {
		texts[i] = value(i)
		none[i] = texts[i] == ""
	}
	return tables.NewStrings(texts, none)
}

// Bytes returns n byte strings; a nil one is null.
func Bytes(n int, value func(i int) []byte) *tables.Vector {
	return joined(n, value, func(all []byte, offs []uint32, none []bool) *tables.Vector {
		return tables.NewBytes(tables.Type{Kind: tables.Binary}, all, offs, none)
	})
}

// Integers returns n lists of integers; a nil one is null.
func Integers(n int, value func(i int) []int64) *tables.Vector {
	return Lists(func(all []int64) *tables.Vector { return tables.NewInts(int64Type, all, nil) }, n, value)
}

// Floats returns n lists of numbers of a type; a nil one is null.
func Floats(t tables.Type, n int, value func(i int) []float64) *tables.Vector {
	return Lists(func(all []float64) *tables.Vector { return tables.NewFloats(t, all, nil) }, n, value)
}

// Lists returns n lists, of whose elements of makes a column; a nil one is null.
func Lists[T any](of func(all []T) *tables.Vector, n int, value func(i int) []T) *tables.Vector {
	return joined(n, value, func(all []T, offs []uint32, none []bool) *tables.Vector {
		return tables.NewList(of(all), offs, none)
	})
}

// joined calls vector with the elements of n values, where each ends, and which are nil.
func joined[T any](n int, value func(i int) []T,
	vector func(all []T, offs []uint32, none []bool) *tables.Vector) *tables.Vector {
	var all []T
	offs, none := make([]uint32, 1, n+1), make([]bool, n)
	for i := range n {
		v := value(i)
		none[i] = v == nil
		all = append(all, v...)
		offs = append(offs, uint32(len(all)))
	}
	return vector(all, offs, none)
}
