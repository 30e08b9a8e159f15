package tables

import (
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
)

// Column returns the vector as a column, whose name is for errors. Decimals, bytes, structs and lists of lists are
// fault.Unsupported.
func (v *Vector) Column(name string) (*column.Column, error) {
	kind, unit := v.typ.Column()
	if kind == 0 {
		return nil, fault.New(fault.Unsupported, "column "+name, "holds values of type %v", v.typ)
	}
	return column.Of(kind, unit, int64(v.n), v.value), nil
}

// Column returns the kind of a column of values of the type, 0 of those that no column has, and what dates and
// timestamps count.
func (t Type) Column() (kind column.Kind, unit time.Duration) {
	switch t.Kind {
	case Bool, Int64, Uint64, Time:
		return column.Int, 0
	case Timestamp:
		return column.Int, time.Microsecond
	case Date:
		return column.Int, 24 * time.Hour
	case Float64:
		return column.Float, 0
	case String:
		return column.Text, 0
	case List:
		if kind, _ = t.Elem.Column(); kind != 0 && !kind.IsList() {
			return kind | column.List, 0
		}
	}
	return 0, 0
}

// value returns the value of a row as a column has it.
func (v *Vector) value(row int64) (value column.Value) {
	i := int(row)
	if value.Null = v.Null(i); value.Null {
		return value
	}
	switch v.typ.Kind {
	case Float64:
		value.Float = v.floats[i]
	case String:
		value.Text = v.Bytes(i)
	case List:
		value.List = make([]column.Value, 0, v.offs[i+1]-v.offs[i])
		for k := v.offs[i]; k < v.offs[i+1]; k++ {
			value.List = append(value.List, v.children[0].value(int64(k)))
		}
	default:
		value.Int = v.Int(i)
	}
	return value
}

// add appends what value returns. It takes no booleans, decimals and structs.
func (v *Vector) add(value *column.Value) {
	v.begin(value.Null)
	switch v.typ.Kind {
	case Float64:
		v.floats = append(v.floats, value.Float)
	case String, Binary:
		v.data = append(v.data, value.Text...)
		v.offs = append(v.offs, uint32(len(v.data)))
	case List:
		for i := range value.List {
			v.children[0].add(&value.List[i])
		}
		v.offs = append(v.offs, uint32(v.children[0].n))
	default:
		v.ints = append(v.ints, value.Int)
	}
}

// begin appends whether the value that is added next is null.
func (v *Vector) begin(null bool) {
	if null && v.nulls == nil {
		v.nulls = make([]bool, v.n)
	}
	if v.n++; v.nulls != nil {
		v.nulls = append(v.nulls, null)
	}
}
