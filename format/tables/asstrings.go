package tables

import (
	"bytes"
	"math"
	"slices"
	"strconv"
)

// isScalar reports whether the values of a type can be cast to strings, as they are when Concat joins them with
// strings.
func (t Type) isScalar() bool {
	switch t.Kind {
	case Bool, Int64, Uint64, Float64, Decimal, Timestamp, Date, Time:
		return true
	}
	return false
}

// BecomesString reports whether joining a column of type t as type joined turns its values, or the elements of its
// lists or fields of its structs, into strings.
func (t Type) BecomesString(joined Type) bool {
	if t.Kind == List && joined.Kind == List {
		return t.Elem.BecomesString(*joined.Elem)
	}
	for i := range min(len(t.Fields), len(joined.Fields)) {
		if t.Fields[i].Type.BecomesString(joined.Fields[i].Type) {
			return true
		}
	}
	return joined.Kind == String && t.Kind != String && t.Kind != Null
}

// inType returns the vectors that Append joins as type t: those without values become nulls of the type, and scalars
// are cast to strings if it is String.
func inType(t Type, parts []*Vector) []*Vector {
	out := slices.Clone(parts)
	for i, part := range parts {
		switch {
		case part.typ.Kind == Null:
			out[i] = NewNulls(t, part.n)
		case t.Kind == String && part.typ.isScalar():
			out[i] = part.asStrings()
		}
	}
	return out
}

// asStrings casts the values to strings as DuckDB casts them to VARCHAR: "1.0", "true", "2020-01-02 03:04:05.5", and
// "2020-01-02 03:04:05.5+00" for timestamps with a zone.
func (v *Vector) asStrings() *Vector {
	out := &Vector{typ: Strings, n: v.n, nulls: v.nulls, offs: make([]uint32, 1, v.n+1)}
	for i := range v.n {
		if !v.Null(i) {
			out.data = v.AppendCast(out.data, i)
		}
		// Offsets stop at 4 GiB: Append refuses vectors of that size.
		out.offs = append(out.offs, uint32(min(len(out.data), math.MaxUint32)))
	}
	return out
}

// AppendCast appends value i as DuckDB casts it to VARCHAR. The value must not be null, list or struct.
func (v *Vector) AppendCast(dst []byte, i int) []byte {
	switch v.typ.Kind {
	case Float64:
		return appendCastFloat(dst, v.floats[i], int(v.typ.Bits))
	case Timestamp:
		dst = timeOf(v.ints[i], v.Nano(i)).AppendFormat(dst, "2006-01-02 15:04:05.999999999")
		if v.typ.UTC {
			dst = append(dst, "+00"...)
		}
		return dst
	case Time:
		return timeOf(v.ints[i], 0).AppendFormat(dst, "15:04:05.999999999")
	case Decimal, Date:
		return append(dst, v.formatValue(i)...)
	}
	return v.AppendJSON(dst, i) // digits, true, false
}

// appendCastFloat appends the shortest string that parses back to the same float of the given width. Numbers below 1e-4
// and from 1e16 on have an exponent, all others a decimal point: DuckDB writes them so.
func appendCastFloat(dst []byte, f float64, bits int) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, "nan"...)
	case math.IsInf(f, 0):
		return append(dst, map[bool]string{true: "inf", false: "-inf"}[f > 0]...)
	}
	if bits != 32 {
		bits = 64
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.AppendFloat(dst, f, 'e', -1, bits)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'f', -1, bits)
	if bytes.IndexByte(dst[start:], '.') < 0 {
		dst = append(dst, ".0"...)
	}
	return dst
}
