// Package column has the words in which specs, tables and catalogs speak of columns: the kind of their values, what
// becomes of those that some tables lack, and ranges of time. It reads none.
package column

import (
	"bytes"
	"math"
	"slices"
	"strconv"
)

// Kind is the kind of a field of a sample.
type Kind uint8

// Kinds. All integers become 64-bit integers, and all floats float64.
const (
	Raster Kind = iota + 1 // a path or URI
	Int
	Float
	Text // UTF-8

	List Kind = 1 << 7 // of a kind: Int | List
)

// Elem returns the kind of the elements of lists, or the kind itself.
func (k Kind) Elem() Kind { return k &^ List }

// IsList reports whether the values are lists.
func (k Kind) IsList() bool { return k&List != 0 }

var kindNames = [...]string{"invalid", "raster", "int", "float", "text"}

// String returns "raster", "int", "float" or "text", and "lists of" before the kind of elements.
func (k Kind) String() string {
	if k.IsList() {
		return "lists of " + k.Elem().String()
	}
	if int(k) >= len(kindNames) {
		k = 0
	}
	return kindNames[k]
}

// Value is the value of a metadata column, in the member that its field's Kind names. For a null all members are zero.
// Nobody changes its bytes: they are mostly a part of a page or of a column in memory.
type Value struct {
	Int   int64
	Float float64
	Text  []byte
	List  []Value // not nil of a list, unless it is null
	Null  bool
}

// Clone returns the value with memory of its own.
func (v Value) Clone() Value {
	v.Text, v.List = bytes.Clone(v.Text), slices.Clone(v.List)
	for i := range v.List {
		v.List[i] = v.List[i].Clone()
	}
	return v
}

// Number returns a value of kind Int or Float as a float64, NaN for null.
func (v Value) Number(kind Kind) float64 {
	switch {
	case v.Null:
		return math.NaN()
	case kind == Int:
		return float64(v.Int)
	}
	return v.Float
}

// In returns a value of a kind as the string that a split hashes, and that names samples: integers in decimal, floats
// in the fewest digits that give the same float64. Specs depend on this form, so it must not change.
func (v Value) In(kind Kind) string {
	switch kind {
	case Int:
		return strconv.FormatInt(v.Int, 10)
	case Float:
		return strconv.FormatFloat(v.Float, 'g', -1, 64)
	}
	return string(v.Text)
}
