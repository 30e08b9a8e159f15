package encode

import (
	"encoding/binary"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/kernel"
)

// shredder takes the values of rows apart into the columns of the file: values with their repetition and definition
// levels, as https://parquet.apache.org/docs/file-format/nestedencoding/ describes them.
type shredder struct {
	leaves [][]parquet.Value
	broken string // a column with a null whose type is required
}

// leafTree is the tree of leaves of a column: leaves first to end, end not included.
type leafTree struct {
	typ        tables.Type
	column     string
	first, end int
	below      []leafTree // of a list its element, of a struct its fields, of a map both
	required   bool       // never null, as the key of a map: its node has no level of its own
}

// shapeOf returns the shape of a type, after it added the leaves.
func (w *Writer) shapeOf(column string, t tables.Type) leafTree {
	tree := leafTree{typ: t, column: column, first: w.leaves, required: t.Stored().Required}
	switch t.Kind {
	case tables.List:
		if t.Stored().Store == tables.Map {
			tree.below = []leafTree{w.shapeOf(column, t.Elem.Fields[0].Type), w.shapeOf(column, t.Elem.Fields[1].Type)}
			tree.below[0].required = true
			break
		}
		tree.below = []leafTree{w.shapeOf(column, *t.Elem)}
	case tables.Struct:
		for _, f := range t.Fields {
			tree.below = append(tree.below, w.shapeOf(column, f.Type))
		}
	default:
		w.leaves++
	}
	tree.end = w.leaves
	return tree
}

// add appends value i of v to the leaves of its shape. rep is the repetition level of its first value, def the number
// of nodes above that are not null, and depth the number of lists above.
func (s *shredder) add(x *leafTree, v *tables.Vector, i, rep, def, depth int) {
	if v.Null(i) {
		if x.required {
			s.broken = x.column
		}
		s.addNull(x, rep, def)
		return
	}
	if x.required {
		def--
	}
	switch x.typ.Kind {
	case tables.List:
		child, lo, hi := v.List(i)
		if lo == hi {
			s.addNull(x, rep, def+1)
			return
		}
		for k := lo; k < hi; k++ {
			// Two nodes are not null: the list, and its repeated group, which in a map is the pair.
			if len(x.below) == 2 {
				s.add(&x.below[0], child.Field(0), k, rep, def+2, depth+1)
				s.add(&x.below[1], child.Field(1), k, rep, def+2, depth+1)
			} else {
				s.add(&x.below[0], child, k, rep, def+2, depth+1)
			}
			rep = depth + 1
		}
	case tables.Struct:
		for k := range x.below {
			s.add(&x.below[k], v.Field(k), i, rep, def+1, depth)
		}
	default:
		s.leaves[x.first] = append(s.leaves[x.first], valueOf(x.typ, v, i).Level(rep, def+1, x.first))
	}
}

// addNull appends a null to all leaves of a shape.
func (s *shredder) addNull(x *leafTree, rep, def int) {
	for k := x.first; k < x.end; k++ {
		s.leaves[k] = append(s.leaves[k], parquet.NullValue().Level(rep, def, k))
	}
}

// valueOf returns value i, which is not null.
func valueOf(t tables.Type, v *tables.Vector, i int) parquet.Value {
	switch t.Kind {
	case tables.Bool:
		return parquet.BooleanValue(v.Int(i) != 0)
	case tables.Date:
		return parquet.Int32Value(int32(v.Int(i)))
	case tables.Int64, tables.Uint64:
		if t.Bits <= 32 {
			return parquet.Int32Value(int32(v.Int(i)))
		}
	case tables.Float64:
		if t.Bits == 64 {
			return parquet.DoubleValue(v.Float(i))
		}
		if t.Bits == 16 {
			h := kernel.Float16FromFloat32(float32(v.Float(i)))
			return parquet.FixedLenByteArrayValue([]byte{byte(h), byte(h >> 8)})
		}
		return parquet.FloatValue(float32(v.Float(i)))
	case tables.String:
		return parquet.ByteArrayValue(v.Bytes(i))
	case tables.Binary:
		if t.Form != nil && (t.Form.Store == tables.FixedBytes || t.Form.Store == tables.Decimals) {
			return parquet.FixedLenByteArrayValue(v.Bytes(i))
		}
		return parquet.ByteArrayValue(v.Bytes(i))
	case tables.Time, tables.Timestamp:
		if t.Stored().Unit == 3 && !t.Nano {
			if t.Kind == tables.Time {
				return parquet.Int32Value(int32(v.Int(i) / 1000))
			}
			return parquet.Int64Value(v.Int(i) / 1000)
		}
		if t.Nano {
			nanos := v.Int(i) * 1000
			if after := v.Nanos(); after != nil {
				nanos += after[i]
			}
			return parquet.Int64Value(nanos)
		}
	case tables.Decimal:
		return parquet.FixedLenByteArrayValue(decimal(v, i)[decimalBytes-decimalWidth(t):])
	}
	return parquet.Int64Value(v.Int(i))
}

// decimal returns value i as big-endian two's complement.
func decimal(v *tables.Vector, i int) []byte {
	data := binary.BigEndian.AppendUint64(make([]byte, 0, decimalBytes), uint64(v.High()[i]))
	return binary.BigEndian.AppendUint64(data, uint64(v.Ints()[i]))
}
