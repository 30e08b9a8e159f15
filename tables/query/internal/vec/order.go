package vec

import (
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/query/internal/sqltype"
)

// Ordered reports whether the values of a column of a type have an order.
func Ordered(t tables.Type) bool {
	return sqltype.RepOf(t) != sqltype.RepOther || t.Kind == tables.Decimal
}

// OrderAt compares two values of a type: -1, 0 or 1.
func OrderAt(t tables.Type, a *Vec, i int, b *Vec, k int) int {
	switch sqltype.RepOf(t) {
	case sqltype.RepFloat:
		return OrderFloat(a.Floats[i], b.Floats[k])
	case sqltype.RepBytes:
		s, t := a.Bytes(i), b.Bytes(k)
		return int(sqltype.Bit(string(s) > string(t)) - sqltype.Bit(string(s) < string(t)))
	case sqltype.RepUint:
		return Order(uint64(a.Ints[i]), uint64(b.Ints[k]))
	}
	if t.Kind == tables.Bool {
		return Order(sqltype.Bit(a.Bools[i]), sqltype.Bit(b.Bools[k]))
	}
	if o := Order(a.Ints[i], b.Ints[k]); o != 0 {
		return o
	}
	return Order(a.Nanos(i), b.Nanos(k))
}

// comparator compares two rows of a vector by their values. Nulls compare as some value; the caller handles them.
func comparator(v *tables.Vector) func(a, b int) int {
	if v.Kind() == tables.Decimal {
		return func(a, b int) int { return v.Big(a).Cmp(v.Big(b)) }
	}
	switch sqltype.RepOf(v.Type()) {
	case sqltype.RepNone, sqltype.RepOther:
		return func(int, int) int { return 0 }
	case sqltype.RepFloat:
		x := v.Floats()
		return func(a, b int) int { return OrderFloat(x[a], x[b]) }
	case sqltype.RepBytes:
		data, offs := v.Raw()
		return func(a, b int) int {
			s, t := data[offs[a]:offs[a+1]], data[offs[b]:offs[b+1]]
			switch {
			case string(s) < string(t):
				return -1
			case string(s) > string(t):
				return 1
			}
			return 0
		}
	case sqltype.RepUint:
		x := v.Ints()
		return func(a, b int) int { return Order(uint64(x[a]), uint64(x[b])) }
	}
	x := v.Ints()
	if ns := v.Nanos(); ns != nil {
		return func(a, b int) int {
			if x[a] != x[b] {
				return Order(x[a], x[b])
			}
			return Order(ns[a], ns[b])
		}
	}
	return func(a, b int) int { return Order(x[a], x[b]) }
}

// Order compares two integers.
func Order[T int64 | uint64](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
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
	return int(sqltype.Bit(a != a)) - int(sqltype.Bit(b != b))
}
