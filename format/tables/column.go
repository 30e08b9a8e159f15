package tables

import (
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
)

// units are what the numbers of a kind count.
var units = map[Kind]time.Duration{Date: 24 * time.Hour, Timestamp: time.Microsecond}

// Column returns the vector as a column, whose name is for errors. Decimals, bytes, structs and lists of lists are
// fault.Unsupported.
func (v *Vector) Column(name string) (*column.Column, error) {
	kind, value := v.values()
	if kind == 0 {
		return nil, fault.New(fault.Unsupported, "column "+name, "holds values of type %v", v.typ)
	}
	return column.Of(kind, units[v.typ.Kind], int64(v.n), value), nil
}

// values returns the kind of the values, 0 of those that no column has, and what returns the value of a row.
func (v *Vector) values() (column.Kind, func(row int64) column.Value) {
	var kind column.Kind
	var value func(row int64) column.Value
	switch v.typ.Kind {
	case Bool, Int64, Uint64, Timestamp, Date, Time:
		kind, value = column.Int, func(row int64) column.Value { return column.Value{Int: v.Int(int(row))} }
	case Float64:
		kind, value = column.Float, func(row int64) column.Value { return column.Value{Float: v.floats[row]} }
	case String:
		kind, value = column.Text, func(row int64) column.Value { return column.Value{Text: v.Bytes(int(row))} }
	case List:
		element, of := v.children[0].values()
		if element == 0 || element.IsList() {
			return 0, nil
		}
		kind, value = element|column.List, func(row int64) column.Value {
			list := make([]column.Value, 0, v.offs[row+1]-v.offs[row])
			for i := v.offs[row]; i < v.offs[row+1]; i++ {
				list = append(list, of(int64(i)))
			}
			return column.Value{List: list}
		}
	}
	return kind, func(row int64) column.Value {
		if v.Null(int(row)) {
			return column.Value{Null: true}
		}
		return value(row)
	}
}
