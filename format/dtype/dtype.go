// Package dtype has the types of samples and of the elements of tensors. Programs that only take batches need no more
// of the formats.
package dtype

import "fmt"

// Type is the type of one sample (one band of one pixel). Its name is numpy's, if numpy has the type.
type Type uint8

// Sample types. ComplexInt16 and ComplexInt32 are GDAL's CInt16 and CInt32, ComplexFloat16 its
// CFloat16: two components of that type, which numpy has no name for.
const (
	// The values are stored in index blobs: they must not change, and new types go to the end.
	Invalid Type = iota
	Uint8
	Uint16
	Uint32
	Uint64
	Int8
	Int16
	Int32
	Int64
	Float16
	Float32
	Float64
	Complex64
	Complex128
	ComplexInt16
	ComplexInt32
	ComplexFloat16
	BFloat16

	// Types of Python's ml_dtypes, with their names. One sample takes one byte in memory, even if it
	// has fewer bits.
	Uint1
	Uint2
	Uint4
	Int2
	Int4
	Float8E4M3FN
	Float8E5M2
	Float8E8M0FNU
	Float6E2M3FN
	Float6E3M2FN
	Float4E2M1FN
	End // one past the last
)

var types = [End]struct {
	name  string
	size  int // bytes a sample, both components of a complex one
	parts int // components a sample
}{
	Uint8: {"uint8", 1, 1}, Uint16: {"uint16", 2, 1}, Uint32: {"uint32", 4, 1}, Uint64: {"uint64", 8, 1},
	Int8: {"int8", 1, 1}, Int16: {"int16", 2, 1}, Int32: {"int32", 4, 1}, Int64: {"int64", 8, 1},
	Float16: {"float16", 2, 1}, Float32: {"float32", 4, 1}, Float64: {"float64", 8, 1},
	Complex64: {"complex64", 8, 2}, Complex128: {"complex128", 16, 2},
	ComplexInt16: {"complex_int16", 4, 2}, ComplexInt32: {"complex_int32", 8, 2},
	ComplexFloat16: {"complex_float16", 4, 2}, BFloat16: {"bfloat16", 2, 1},
	Uint1: {"uint1", 1, 1}, Uint2: {"uint2", 1, 1}, Uint4: {"uint4", 1, 1}, Int2: {"int2", 1, 1}, Int4: {"int4", 1, 1},
	Float8E4M3FN: {"float8_e4m3fn", 1, 1}, Float8E5M2: {"float8_e5m2", 1, 1}, Float8E8M0FNU: {"float8_e8m0fnu", 1, 1},
	Float6E2M3FN: {"float6_e2m3fn", 1, 1}, Float6E3M2FN: {"float6_e3m2fn", 1, 1}, Float4E2M1FN: {"float4_e2m1fn", 1, 1},
}

// Valid reports whether d is one of the constants above.
func (d Type) Valid() bool { return d > Invalid && d < End }

// Integer reports whether samples are integers of 8 to 64 bits.
func (d Type) Integer() bool { return d >= Uint8 && d <= Int64 }

// Size returns the bytes of one sample.
func (d Type) Size() int {
	if !d.Valid() {
		return 0
	}
	return types[d].size
}

// Bits returns the bits of one sample, both components of a complex one: 8 times Size but for types that
// fill their byte in part.
func (d Type) Bits() int {
	switch d {
	case Uint1:
		return 1
	case Uint2, Int2:
		return 2
	case Uint4, Int4, Float4E2M1FN:
		return 4
	case Float6E2M3FN, Float6E3M2FN:
		return 6
	}
	return 8 * d.Size()
}

// Components returns 2 for complex types and 1 for the others.
func (d Type) Components() int {
	if !d.Valid() {
		return 0
	}
	return types[d].parts
}

// String returns the numpy name.
func (d Type) String() string {
	if !d.Valid() {
		return "invalid"
	}
	return types[d].name
}

// Parse returns the type with a numpy name.
func Parse(name string) (Type, error) {
	for d := Uint8; d < End; d++ {
		if types[d].name == name {
			return d, nil
		}
	}
	return Invalid, fmt.Errorf("no dtype is called %q", name)
}

// MarshalText writes the numpy name (JSON, flags).
func (d Type) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads a numpy name, also in the JSON of statistics.
func (d *Type) UnmarshalText(b []byte) error {
	parsed, err := Parse(string(b))
	*d = parsed
	return err
}
