package vec

import (
	"encoding/binary"
	"math"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query/internal/sql"
)

// AppendKey appends value i as bytes that are equal exactly if values of the type are.
func AppendKey(dst []byte, v *tables.Vector, i int) []byte {
	if v.Null(i) {
		return append(dst, 0)
	}
	dst = append(dst, 1)
	le := binary.LittleEndian
	switch v.Kind() {
	case tables.Float64:
		number := v.Float(i)
		if number != number {
			// All NaNs must be equal, with any bits, so one stands for all.
			number = math.NaN()
		}
		// -0 must be equal to 0: adding 0 makes it that.
		return le.AppendUint64(dst, math.Float64bits(number+0))
	case tables.String, tables.Binary:
		b := v.Bytes(i)
		return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
	case tables.List:
		child, lo, hi := v.List(i)
		dst = binary.AppendUvarint(dst, uint64(hi-lo))
		for k := lo; k < hi; k++ {
			dst = AppendKey(dst, child, k)
		}
		return dst
	case tables.Struct:
		for k := range v.Type().Fields {
			dst = AppendKey(dst, v.Field(k), i)
		}
		return dst
	case tables.Decimal:
		dst = le.AppendUint64(dst, uint64(v.High()[i]))
	case tables.Timestamp:
		nanos := int64(0)
		if n := v.Nanos(); n != nil {
			nanos = n[i]
		}
		dst = le.AppendUint16(dst, uint16(nanos))
	}
	return le.AppendUint64(dst, uint64(v.Int(i)))
}

// Groups numbers the groups of rows with equal keys, in the order of their first rows.
type Groups struct {
	Of    []int32 // the group of each row
	First []int32 // the first row of each group
}

// GroupRows groups n rows by keys. Without keys all rows are one group.
func GroupRows(n int, keys []*tables.Vector) *Groups {
	groups := &Groups{Of: make([]int32, n)}
	if len(keys) == 0 {
		groups.First = []int32{0}
		return groups
	}
	if len(keys) == 1 && keys[0].Nulls() == nil && keys[0].Nanos() == nil {
		switch values := keys[0]; sql.RepOf(values.Type()) {
		case sql.RepInt, sql.RepUint:
			seen := map[int64]int32{}
			for row, x := range values.Ints() {
				id, ok := seen[x]
				if !ok {
					id = int32(len(groups.First))
					seen[x] = id
					groups.First = append(groups.First, int32(row))
				}
				groups.Of[row] = id
			}
			return groups
		}
	}
	seen := NewKeySet()
	var key []byte
	for row := range n {
		key = key[:0]
		for _, v := range keys {
			key = AppendKey(key, v, row)
		}
		id, added := seen.Add(key)
		if added {
			groups.First = append(groups.First, int32(row))
		}
		groups.Of[row] = id
	}
	return groups
}
