package vec

import (
	"bytes"
	"cmp"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query/internal/sql"
)

// Ordered reports whether the values of a column of a type have an order.
func Ordered(t tables.Type) bool {
	return sql.RepOf(t) != sql.RepOther || t.Kind == tables.Decimal
}

// Comparator compares a value of one vector with a value of another of its type: -1, 0 or 1. Nulls compare as some
// value; the caller handles them.
func Comparator(a, b *tables.Vector) func(i, k int) int {
	ints, nanos, floats := a.Ints(), a.Nanos(), a.Floats()
	others, otherNanos, otherFloats := b.Ints(), b.Nanos(), b.Floats()
	switch rep := sql.RepOf(a.Type()); {
	case a.Kind() == tables.Decimal:
		return func(i, k int) int { return a.Big(i).Cmp(b.Big(k)) }
	case rep == sql.RepNone, rep == sql.RepOther:
		return func(int, int) int { return 0 }
	case rep == sql.RepFloat:
		return func(i, k int) int { return OrderFloat(floats[i], otherFloats[k]) }
	case rep == sql.RepBytes:
		data, lo, hi := a.Spans()
		other, otherLo, otherHi := b.Spans()
		return func(i, k int) int { return bytes.Compare(data[lo[i]:hi[i]], other[otherLo[k]:otherHi[k]]) }
	case rep == sql.RepUint:
		return func(i, k int) int { return cmp.Compare(uint64(ints[i]), uint64(others[k])) }
	case nanos != nil || otherNanos != nil:
		return func(i, k int) int { return cmp.Or(cmp.Compare(ints[i], others[k]), cmp.Compare(a.Nano(i), b.Nano(k))) }
	}
	return func(i, k int) int { return cmp.Compare(ints[i], others[k]) }
}

// OrderFloat compares two floats. NaN is equal to itself and above all numbers.
func OrderFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	case a == b:
		return 0
	}
	return int(sql.Bit(a != a) - sql.Bit(b != b))
}
