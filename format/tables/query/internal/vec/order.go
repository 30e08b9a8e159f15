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

// OrderAt compares two values of a type: -1, 0 or 1.
func OrderAt(t tables.Type, a *Vec, i int, b *Vec, k int) int {
	switch sql.RepOf(t) {
	case sql.RepFloat:
		return OrderFloat(a.Floats[i], b.Floats[k])
	case sql.RepBytes:
		return bytes.Compare(a.Bytes(i), b.Bytes(k))
	case sql.RepUint:
		return cmp.Compare(uint64(a.Ints[i]), uint64(b.Ints[k]))
	}
	if t.Kind == tables.Bool {
		return cmp.Compare(sql.Bit(a.Bools[i]), sql.Bit(b.Bools[k]))
	}
	return cmp.Or(cmp.Compare(a.Ints[i], b.Ints[k]), cmp.Compare(a.Nanos(i), b.Nanos(k)))
}

// comparator compares two rows of a vector by their values. Nulls compare as some value; the caller handles them.
func comparator(v *tables.Vector) func(a, b int) int {
	ints, nanos, floats := v.Ints(), v.Nanos(), v.Floats()
	switch rep := sql.RepOf(v.Type()); {
	case v.Kind() == tables.Decimal:
		return func(a, b int) int { return v.Big(a).Cmp(v.Big(b)) }
	case rep == sql.RepNone, rep == sql.RepOther:
		return func(int, int) int { return 0 }
	case rep == sql.RepFloat:
		return func(a, b int) int { return OrderFloat(floats[a], floats[b]) }
	case rep == sql.RepBytes:
		data, offs := v.Raw()
		return func(a, b int) int { return bytes.Compare(data[offs[a]:offs[a+1]], data[offs[b]:offs[b+1]]) }
	case rep == sql.RepUint:
		return func(a, b int) int { return cmp.Compare(uint64(ints[a]), uint64(ints[b])) }
	case nanos != nil:
		return func(a, b int) int { return cmp.Or(cmp.Compare(ints[a], ints[b]), cmp.Compare(nanos[a], nanos[b])) }
	}
	return func(a, b int) int { return cmp.Compare(ints[a], ints[b]) }
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
