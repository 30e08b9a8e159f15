package tables

import (
	"bytes"
	"math"
	"strconv"
)

// plain reports whether values of a type have a text: what joins them with texts.
func (t Type) plain() bool {
	switch t.Kind {
	case Bool, Int64, Uint64, Huge, Float64, Decimal, Timestamp, Date, Time:
		return true
	}
	return false
}

// BecomesText reports whether values of a type are texts, which they were not, where they are joined with others as a type
// that holds them all; in lists, their elements.
func (t Type) BecomesText(joined Type) bool {
	if t.Kind == List && joined.Kind == List {
		return t.Elem.BecomesText(*joined.Elem)
	}
	return joined.Kind == Text && t.Kind != Text && t.Kind != Null
}

// texts returns vectors that are to be joined as a type: of text, all are texts.
func texts(t Type, parts []*Vector) []*Vector {
	if t.Kind != Text {
		return parts
	}
	out := make([]*Vector, len(parts))
	for i, p := range parts {
		if out[i] = p; p.typ.plain() {
			out[i] = p.asText()
		}
	}
	return out
}

// asText returns the values as DuckDB casts them to VARCHAR: "1.0", "true", "2020-01-02 03:04:05.5", of instants with
// "+00" behind it.
func (v *Vector) asText() *Vector {
	out := &Vector{typ: Type{Kind: Text}, n: v.n, nulls: v.nulls, offs: make([]uint32, 1, v.n+1)}
	for i := range v.n {
		if !v.Null(i) {
			out.data = v.AppendCast(out.data, i)
		}
		out.offs = append(out.offs, uint32(min(len(out.data), math.MaxUint32))) // Append refuses more
	}
	return out
}

// AppendCast appends value i, of a type that is not nested, as DuckDB casts it to VARCHAR. The value is not null.
func (v *Vector) AppendCast(dst []byte, i int) []byte {
	switch v.typ.Kind {
	case Float64:
		return appendCastFloat(dst, v.floats[i], int(v.typ.Bits))
	case Timestamp:
		dst = instant(v.ints[i], v.nano(i)).AppendFormat(dst, "2006-01-02 15:04:05.999999999")
		if v.typ.UTC {
			dst = append(dst, "+00"...)
		}
		return dst
	case Time:
		return instant(v.ints[i], 0).AppendFormat(dst, "15:04:05.999999999")
	case Decimal, Date:
		return append(dst, v.plainText(i)...)
	}
	return v.AppendJSON(dst, i) // digits, true, false
}

// appendCastFloat appends the shortest text that is the same float of so many bits again: with a point or an exponent,
// which is that of numbers below 1e-4 and from 1e16 on.
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
	from := len(dst)
	dst = strconv.AppendFloat(dst, f, 'f', -1, bits)
	if bytes.IndexByte(dst[from:], '.') < 0 {
		dst = append(dst, ".0"...)
	}
	return dst
}
