package query

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/chaski-eo/chaski/tables"
)

// appendKey appends value i as bytes that are equal exactly where values of the type are.
func appendKey(dst []byte, v *tables.Vector, i int) []byte {
	if v.Null(i) {
		return append(dst, 0)
	}
	dst = append(dst, 1)
	le := binary.LittleEndian
	switch v.Kind() {
	case tables.Float64:
		f := v.Float(i)
		if f != f {
			f = math.NaN() // one of many
		}
		return le.AppendUint64(dst, math.Float64bits(f+0)) // -0 becomes 0
	case tables.Text, tables.Binary:
		b := v.Bytes(i)
		return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
	case tables.List:
		child, lo, hi := v.List(i)
		dst = binary.AppendUvarint(dst, uint64(hi-lo))
		for k := lo; k < hi; k++ {
			dst = appendKey(dst, child, k)
		}
		return dst
	case tables.Struct:
		for k := range v.Type().Fields {
			dst = appendKey(dst, v.Field(k), i)
		}
		return dst
	case tables.Huge, tables.Decimal:
		h := v.Int(i) >> 63
		if high := v.High(); high != nil {
			h = high[i]
		}
		dst = le.AppendUint64(dst, uint64(h))
	case tables.Timestamp:
		ns := int64(0)
		if n := v.Nanos(); n != nil {
			ns = n[i]
		}
		dst = le.AppendUint16(dst, uint16(ns))
	}
	return le.AppendUint64(dst, uint64(v.Int(i)))
}

// groups numbers rows by equal keys, in the order of their first row.
type groups struct {
	of    []int32 // group of each row
	first []int32 // first row of each group
}

// groupRows groups n rows by keys; without keys all rows are one group.
func groupRows(n int, keys []*tables.Vector) *groups {
	g := &groups{of: make([]int32, n)}
	if len(keys) == 0 {
		g.first = []int32{0}
		return g
	}
	if len(keys) == 1 && keys[0].Nulls() == nil && keys[0].Nanos() == nil {
		switch v := keys[0]; repOf(v.Type()) {
		case repInt, repUint:
			seen := map[int64]int32{}
			for r, x := range v.Ints() {
				id, ok := seen[x]
				if !ok {
					id = int32(len(g.first))
					seen[x] = id
					g.first = append(g.first, int32(r))
				}
				g.of[r] = id
			}
			return g
		}
	}
	seen := newKeySet()
	var key []byte
	for r := range n {
		key = key[:0]
		for _, v := range keys {
			key = appendKey(key, v, r)
		}
		id, added := seen.add(key)
		if added {
			g.first = append(g.first, int32(r))
		}
		g.of[r] = id
	}
	return g
}

func sumInts(g *groups, arg *tables.Vector, use []int32, n int) (lo, hi []int64) {
	lo, hi = make([]int64, n), make([]int64, n)
	x := arg.Ints()
	if x == nil { // all null
		return lo, hi
	}
	high := arg.High()
	unsigned := repOf(arg.Type()) == repUint
	for _, r := range use {
		h := x[r] >> 63
		switch {
		case high != nil:
			h = high[r]
		case unsigned:
			h = 0
		}
		id := g.of[r]
		s, carry := bits.Add64(uint64(lo[id]), uint64(x[r]), 0)
		lo[id] = int64(s)
		hi[id] += h + int64(carry)
	}
	return lo, hi
}

// comparator orders two rows of a vector by their values; nulls are not looked at.
func comparator(v *tables.Vector) func(a, b int) int {
	switch repOf(v.Type()) {
	case repNone, repOther:
		return func(int, int) int { return 0 }
	case repFloat:
		x := v.Floats()
		return func(a, b int) int { return orderFloat(x[a], x[b]) }
	case repBytes:
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
	case repUint:
		x := v.Ints()
		return func(a, b int) int { return order(uint64(x[a]), uint64(x[b])) }
	case repBig:
		l, h := v.Ints(), v.High()
		if h == nil {
			return func(a, b int) int { return order(l[a], l[b]) }
		}
		return func(a, b int) int { return orderBig(h[a], l[a], h[b], l[b]) }
	}
	x := v.Ints()
	if ns := v.Nanos(); ns != nil {
		return func(a, b int) int {
			if x[a] != x[b] {
				return order(x[a], x[b])
			}
			return order(ns[a], ns[b])
		}
	}
	return func(a, b int) int { return order(x[a], x[b]) }
}
