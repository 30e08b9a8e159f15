// Package sql has what SQL means beside its syntax: types, with their names, the form of their values in memory and the
// common type of two; dates and timestamps; and the errors that are about a query and not about the tables.
package sql

import (
	"math/big"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/format/tables"
)

// Limits returns the least and the greatest integer of a type.
func Limits(t tables.Type) (lo, hi *big.Int) {
	unit := big.NewInt(1)
	if t.Kind == tables.Uint64 {
		return new(big.Int), new(big.Int).Sub(new(big.Int).Lsh(unit, uint(t.Bits)), unit)
	}
	hi = new(big.Int).Lsh(unit, uint(t.Bits)-1)
	return new(big.Int).Neg(hi), hi.Sub(hi, unit)
}

// IsDay reports whether values of a type have a date.
func IsDay(t tables.Type) bool { return t.Kind == tables.Date || t.Kind == tables.Timestamp }

// rep is the form of the values of a type in memory.
type rep uint8

const (
	RepNone rep = iota // all values are null
	RepInt             // bool, integers, dates, times
	RepUint            // unsigned integers of 64 bits
	RepFloat
	RepBytes
	RepOther // lists, structs and decimals, which expressions do not make
)

// RepOf returns the form of the values of a type.
func RepOf(t tables.Type) rep {
	switch t.Kind {
	case tables.Null:
		return RepNone
	case tables.Uint64:
		if t.Bits == 64 {
			return RepUint
		}
		return RepInt
	case tables.Float64:
		return RepFloat
	case tables.String, tables.Binary:
		return RepBytes
	case tables.List, tables.Struct, tables.Decimal:
		return RepOther
	}
	return RepInt
}

// IsInteger reports whether a type is an integer of any width.
func IsInteger(t tables.Type) bool { return t.Kind == tables.Int64 || t.Kind == tables.Uint64 }

// IsNumber reports whether a type is an integer or a float.
func IsNumber(t tables.Type) bool { return IsInteger(t) || t.Kind == tables.Float64 }

var (
	// Types that expressions often have.
	Bool   = tables.Type{Kind: tables.Bool}
	Int64  = tables.Ints
	Double = tables.Floats
	String = tables.Strings
	Float  = tables.Type{Kind: tables.Float64, Bits: 32}
	Date   = tables.Type{Kind: tables.Date}
	// Timestamp counts microseconds.
	Timestamp = tables.Type{Kind: tables.Timestamp}
)

// named are the types that a cast may name, each with its names; messages of DuckDB have the first one.
var named = []struct {
	names string
	t     tables.Type
}{
	{"BOOLEAN BOOL LOGICAL", Bool},
	{"TINYINT INT1", tables.Type{Kind: tables.Int64, Bits: 8}},
	{"SMALLINT INT2 INT16 SHORT", tables.Type{Kind: tables.Int64, Bits: 16}},
	{"INTEGER INT INT4 INT32 SIGNED", tables.Type{Kind: tables.Int64, Bits: 32}},
	{"BIGINT INT8 INT64 LONG OID", Int64},
	{"UTINYINT UINT8", tables.Type{Kind: tables.Uint64, Bits: 8}},
	{"USMALLINT UINT16", tables.Type{Kind: tables.Uint64, Bits: 16}},
	{"UINTEGER UINT32", tables.Type{Kind: tables.Uint64, Bits: 32}},
	{"UBIGINT UINT64", tables.Type{Kind: tables.Uint64, Bits: 64}},
	{"FLOAT FLOAT4 REAL", Float},
	{"DOUBLE FLOAT8", Double},
	{"VARCHAR TEXT STRING CHAR BPCHAR", String},
	{"DATE", Date},
	{"TIME", tables.Type{Kind: tables.Time}},
	{"TIMESTAMP DATETIME TIMESTAMP_US", Timestamp},
}

// ByName are the types that a cast may name, in upper case.
var ByName = func() map[string]tables.Type {
	m := map[string]tables.Type{}
	for _, n := range named {
		for name := range strings.FieldsSeq(n.names) {
			m[name] = n.t
		}
	}
	return m
}()

// Name is a type's name in DuckDB.
func Name(t tables.Type) string {
	switch {
	case t.Kind == tables.Null:
		return `"NULL"`
	case t.Kind == tables.Binary:
		return "BLOB"
	case t.Kind == tables.Timestamp && t.UTC:
		return "TIMESTAMP WITH TIME ZONE"
	case t.Kind == tables.Timestamp && t.Nano:
		return "TIMESTAMP_NS"
	case t.Kind == tables.Decimal:
		return "DECIMAL(" + strconv.Itoa(int(t.Precision)) + "," + strconv.Itoa(int(t.Scale)) + ")"
	case t.Kind == tables.List:
		return Name(*t.Elem) + "[]"
	case t.Kind == tables.Float64:
		t.Bits = max(t.Bits, 32) // float16 is a FLOAT
	}
	for _, n := range named {
		if n.t.Kind == t.Kind && n.t.Bits == t.Bits {
			name, _, _ := strings.Cut(n.names, " ")
			return name
		}
	}
	return t.String()
}

// Common returns the common type of two, for CASE, COALESCE and their like. ok is false if DuckDB has no such type, or
// this package does not make it.
func Common(a, b tables.Type) (t tables.Type, ok bool) {
	switch {
	case a.Kind == tables.Null:
		return b, true
	case b.Kind == tables.Null:
		return a, true
	case a.Kind == tables.Timestamp && b.Kind == tables.Timestamp && a.UTC == b.UTC:
		a.Nano = a.Nano || b.Nano
		return a, true
	case a.Equal(b):
		return a, true
	case IsNumber(a) && IsNumber(b):
		return commonNumber(a, b)
	case a.Kind == tables.Date && b.Kind == tables.Timestamp:
		return b, true
	case a.Kind == tables.Timestamp && b.Kind == tables.Date:
		return a, true
	}
	return t, false
}

// commonNumber returns the common type of two numbers. Signed and unsigned numbers of 64 bits have none.
func commonNumber(a, b tables.Type) (tables.Type, bool) {
	switch {
	case a.Kind == tables.Float64 || b.Kind == tables.Float64:
		typ := Float
		if a.Kind == tables.Float64 && a.Bits == 64 || b.Kind == tables.Float64 && b.Bits == 64 {
			typ = Double
		}
		return typ, true
	case a.Kind == b.Kind:
		a.Bits = max(a.Bits, b.Bits)
		return a, true
	case a.Kind == tables.Uint64:
		a, b = b, a
	}
	// a is signed and b is not: a type for both has more bits than b.
	a.Bits = max(a.Bits, 2*b.Bits)
	return a, b.Bits < 64
}
