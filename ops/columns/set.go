package columns

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/chaski-eo/chaski/tables"
)

// Renamed is the prefix that columns of a table get if every container has one of their name.
const Renamed = "source:"

// Rename returns the name that a column of a table has in a container.
func Rename(name string) string {
	if name == "id" || name == "type" {
		return Renamed + name
	}
	return name
}

// Set collects columns.
type Set struct {
	names   []string
	vectors []*tables.Vector
}

// Add adds a column.
func (c *Set) Add(name string, v *tables.Vector) {
	c.names, c.vectors = append(c.names, name), append(c.vectors, v)
}

// Table returns the columns.
func (c *Set) Table() *tables.Table { return tables.FromVectors(c.names, c.vectors) }

// Rasters adds the columns of rasters that are of some parts. A nil raster has null.
func (c *Set) Rasters(rasters []*Raster, wants func(part string) bool) {
	for _, column := range columns {
		if wants(column.part) {
			c.Add(column.name, column.of(rasters))
		}
	}
}

// DropNulls leaves out those of some columns that have no value.
func (c *Set) DropNulls(names ...string) {
	for i := len(c.names) - 1; i >= 0; i-- {
		if v := c.vectors[i]; slices.Contains(names, c.names[i]) && !slices.Contains(v.Nulls(), false) {
			c.names, c.vectors = slices.Delete(c.names, i, i+1), slices.Delete(c.vectors, i, i+1)
		}
	}
}

// Texts returns a column of n strings; "" is null.
func Texts(n int, value func(i int) string) *tables.Vector {
	texts, none := make([]string, n), make([]bool, n)
	for i := range n {
		texts[i] = value(i)
		none[i] = texts[i] == ""
	}
	return tables.NewStrings(texts, none)
}

// Bytes returns a column of n byte strings; a nil one is null.
func Bytes(n int, value func(i int) []byte) *tables.Vector {
	var data []byte
	offs, none := make([]uint32, 1, n+1), make([]bool, n)
	for i := range n {
		b := value(i)
		none[i] = b == nil
		data = append(data, b...)
		offs = append(offs, uint32(len(data)))
	}
	return tables.NewBytes(tables.Type{Kind: tables.Binary}, data, offs, none)
}

var (
	int64s      = tables.Type{Kind: tables.Int64, Bits: 64}
	float64s    = tables.Type{Kind: tables.Float64, Bits: 64}
	float32Type = tables.Type{Kind: tables.Float64, Bits: 32}
	textType    = tables.Type{Kind: tables.String}
)

// Integers returns a column of n lists of integers; a nil one is null.
func Integers(n int, values func(i int) []int64) *tables.Vector {
	return listOf(func(v []int64) *tables.Vector { return tables.NewInts(int64s, v, nil) }, n, values)
}

// floats and float32s return a column of n lists of numbers; a nil one is null.
func floats(n int, values func(i int) []float64) *tables.Vector {
	return listOf(numbersOf(float64s), n, values)
}

func float32s(n int, values func(i int) []float64) *tables.Vector {
	return listOf(numbersOf(float32Type), n, values)
}

func numbersOf(t tables.Type) func([]float64) *tables.Vector {
	return func(v []float64) *tables.Vector { return tables.NewFloats(t, v, nil) }
}

// bands returns a column of n lists with a list of numbers for each band; a nil one is null.
func bands(n int, values func(i int) [][]float64) *tables.Vector {
	return listOf(func(all [][]float64) *tables.Vector {
		return float32s(len(all), func(i int) []float64 { return all[i] })
	}, n, values)
}

// listOf returns n lists; a nil one is null.
func listOf[T any](of func([]T) *tables.Vector, n int, values func(i int) []T) *tables.Vector {
	var flat []T
	offs, none := make([]uint32, 1, n+1), make([]bool, n)
	for i := range n {
		v := values(i)
		none[i] = v == nil
		flat = append(flat, v...)
		offs = append(offs, uint32(len(flat)))
	}
	return tables.NewList(of(flat), offs, none)
}

// single returns a column of n numbers, each the first of a list; a nil list is null.
func single(t tables.Type, n int, values func(i int) []float64) *tables.Vector {
	numbers, none := make([]float64, n), make([]bool, n)
	for i := range n {
		if v := values(i); v == nil {
			none[i] = true
		} else {
			numbers[i] = v[0]
		}
	}
	return tables.NewFloats(t, numbers, none)
}

// point returns a point as WKB: little-endian, type 1. It is nil for NaN.
func point(p [2]float64) []byte {
	if math.IsNaN(p[0] + p[1]) {
		return nil
	}
	b := binary.LittleEndian.AppendUint64([]byte{1, 1, 0, 0, 0}, math.Float64bits(p[0]))
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(p[1]))
}
