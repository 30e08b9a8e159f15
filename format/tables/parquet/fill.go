package parquet

import (
	"encoding/binary"
	"slices"

	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/num"
)

// Take returns the values of some rows, in that order. It shares memory with v.
func (v *Values) Take(rows []int32) *Values {
	out := *v
	out.n, out.at, out.full = len(rows), rows, !v.HasNulls()
	if v.at != nil {
		out.at = num.Pick(v.at, rows)
	}
	return &out
}

// Copy returns the value of row i alone, in memory of its own.
func (v *Values) Copy(i int) *Values {
	out := &Values{n: 1, typ: v.typ, unsigned: v.unsigned, width: v.width}
	switch {
	case v.Null(i):
		out.at = noValues[:1]
	case v.width > 0:
		out.data = slices.Clone(v.Raw(i))
	default:
		raw := v.Raw(i)
		out.offs = []uint32{0}
		out.data = append(binary.LittleEndian.AppendUint32(make([]byte, 0, 4+len(raw)), uint32(len(raw))), raw...)
	}
	return out
}

// stored returns the Values that hold the values themselves: the dictionary if there is one.
func (v *Values) stored() *Values {
	if v.dict != nil {
		return v.dict
	}
	return v
}

// FillBools sets dst, which must be all false, to the values of all rows of a column of booleans. Null rows stay false.
func (v *Values) FillBools(dst []bool) {
	bits := make([]uint8, len(dst))
	pick(bits, v.stored().data, v)
	for i, b := range bits {
		dst[i] = b != 0
	}
}

// FillInts sets dst, which must be all 0, to the values of all rows of a column of integers. Null rows stay 0. Unsigned
// numbers of 64 bits keep their bits.
func (v *Values) FillInts(dst []int64) {
	values := v.stored()
	done := false
	switch {
	case values.width == 4 && values.unsigned:
		done = pickNumbers[uint32](dst, values, v)
	case values.width == 4:
		done = pickNumbers[int32](dst, values, v)
	case values.width == 8:
		done = pickNumbers[int64](dst, values, v)
	}
	for i := 0; !done && i < len(dst); i++ {
		if !v.Null(i) {
			dst[i], _ = v.Int(i)
		}
	}
}

// FillFloats does for a column of floats what FillInts does for integers.
func (v *Values) FillFloats(dst []float64) {
	values := v.stored()
	done := false
	switch values.width {
	case 4:
		done = pickNumbers[float32](dst, values, v)
	case 8:
		done = pickNumbers[float64](dst, values, v)
	}
	for i := 0; !done && i < len(dst); i++ {
		if !v.Null(i) {
			dst[i] = v.Float(i)
		}
	}
}

// pickNumbers sets dst to values that are stored as numbers of type S. It reports false if the bytes are not aligned
// for S and dst needs few of them.
func pickNumbers[S, T cast.Number](dst []T, s, v *Values) bool {
	values, ok := cast.Of[S](s.data)
	if !ok {
		// Copying all values would cost more than reading the few that dst needs one by one.
		if len(dst) < s.n/8 {
			return false
		}
		values = make([]S, len(s.data)/s.width)
		data, ok := cast.Bytes(values)
		if !ok {
			return false
		}
		copy(data, s.data)
	}
	pick(dst, values, v)
	return true
}

// pick sets dst to the rows of v. values are those that v, or its dictionary, stores.
func pick[S, T cast.Number](dst []T, values []S, v *Values) {
	switch {
	case v.dict != nil && v.at == nil:
		for i, k := range v.ix[:len(dst)] {
			dst[i] = T(values[k])
		}
	case v.dict != nil:
		for i, k := range v.at[:len(dst)] {
			if k >= 0 {
				dst[i] = T(values[v.ix[k]])
			}
		}
	case v.at == nil:
		for i, x := range values[:len(dst)] {
			dst[i] = T(x)
		}
	default:
		for i, k := range v.at[:len(dst)] {
			if k >= 0 {
				dst[i] = T(values[k])
			}
		}
	}
}

// FillBytes copies the byte arrays of all rows to dst, one after the other. dst must be as long as Size says. It sets
// offs to where each ends, counted from at. Null rows are empty.
func (v *Values) FillBytes(dst []byte, offs []uint32, at uint32) {
	values, end := v.stored(), 0
	switch {
	case values.width > 0 || v.at != nil:
		for i := range offs {
			if !v.Null(i) {
				end += copy(dst[end:], v.Raw(i))
			}
			offs[i] = at + uint32(end)
		}
	case v.dict != nil:
		for i, k := range v.ix[:len(offs)] {
			o := values.offs[k]
			end += copy(dst[end:], values.data[o+4:o+4+le32(values.data[o:])])
			offs[i] = at + uint32(end)
		}
	default:
		for i, o := range values.offs[:len(offs)] {
			end += copy(dst[end:], values.data[o+4:o+4+le32(values.data[o:])])
			offs[i] = at + uint32(end)
		}
	}
}

// Size returns how many bytes the byte arrays of all rows have together.
func (v *Values) Size() int {
	if v.at == nil && v.dict == nil && v.width == 0 && v.n > 0 { // PLAIN: consecutive, each after its length in 4 bytes
		last := v.offs[v.n-1]
		return int(last+le32(v.data[last:])-v.offs[0]) - 4*(v.n-1)
	}
	size := 0
	if dictionary := v.dict; v.at == nil && dictionary != nil && dictionary.width == 0 {
		for _, k := range v.ix[:v.n] {
			size += int(le32(dictionary.data[dictionary.offs[k]:]))
		}
		return size
	}
	for i := range v.n {
		if !v.Null(i) {
			size += len(v.Raw(i))
		}
	}
	return size
}

// Dictionary returns the values that the rows refer to by number, or nil.
func (v *Values) Dictionary() *Values { return v.dict }

// FillCodes sets dst, for all rows of a column with a dictionary, to codes[k] where k is the number of a row's value in
// the dictionary, and to null for null rows.
func (v *Values) FillCodes(dst, codes []uint8, null uint8) {
	if v.at == nil {
		for i, k := range v.ix[:len(dst)] {
			dst[i] = codes[k]
		}
		return
	}
	for i, k := range v.at[:len(dst)] {
		if dst[i] = null; k >= 0 {
			dst[i] = codes[v.ix[k]]
		}
	}
}
