package encode

import (
	"reflect"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/chaski-eo/chaski/format/tables"
)

// group is a node with named fields in the order of the table. parquet.Group sorts them by name, and people look for
// the columns of a table where they put them.
type group struct {
	parquet.Group
	fields []parquet.Field
}

// Fields implements parquet.Node.
func (g *group) Fields() []parquet.Field { return g.fields }

// GoType implements parquet.Node. The names of columns are no names of Go: everything here goes around Go structs.
func (g *group) GoType() reflect.Type { return reflect.TypeFor[struct{}]() }

// Group returns the node of columns in their order.
func Group(columns []parquet.Field) parquet.Node { return &group{fields: columns} }

// field is a named node of a group.
type field struct {
	parquet.Node
	name string
}

// Field returns a column with a name.
func Field(name string, n parquet.Node) parquet.Field { return field{n, name} }

// Name implements parquet.Field.
func (f field) Name() string { return f.name }

// Value implements parquet.Field. It is called for Go structs only.
func (f field) Value(reflect.Value) reflect.Value { return reflect.Value{} }

// nothing is the type of columns in which all values are null: 32-bit integers that say so, as Arrow writes them.
type nothing struct{ parquet.Type }

// LogicalType implements parquet.Type.
func (nothing) LogicalType() *format.LogicalType {
	return &format.LogicalType{Value: new(format.NullType)}
}

// maybeNull returns the node of a type, which is optional unless the type says otherwise. So Arrow writes columns: the
// schema then stays the same if a later table has nulls.
func maybeNull(n parquet.Node, t tables.Type) parquet.Node {
	if t.Stored().Required {
		return n
	}
	return parquet.Optional(n)
}

// groupOf returns the node of columns.
func groupOf(cols []tables.Column) *group {
	node := &group{}
	for _, column := range cols {
		node.fields = append(node.fields, field{maybeNull(nodeOf(column.Type), column.Type), column.Name})
	}
	return node
}

// half is the type of float16.
type half struct{ parquet.Type }

// LogicalType implements parquet.Type.
func (half) LogicalType() *format.LogicalType {
	return &format.LogicalType{Value: new(format.Float16Type)}
}

// decimalBytes holds 38 digits: 10^38 is less than 2^127.
const decimalBytes = 16

// decimalWidth returns the bytes of a decimal. pyarrow reads one of 32 or 64 bits from no more bytes.
func decimalWidth(t tables.Type) int {
	if f := t.Stored(); f.Store == tables.Decimals && f.Size < 8*decimalBytes {
		return int(f.Size) / 8
	}
	return decimalBytes
}

// binaryNode returns the node of a form of Binary.
func binaryNode(f tables.Form) parquet.Node {
	switch {
	case f.Extension == tables.ExtensionUUID && f.Size == 16:
		return parquet.UUID()
	case f.Store == tables.FixedBytes:
		return parquet.Leaf(parquet.FixedLenByteArrayType(int(f.Size)))
	case f.Store == tables.Decimals:
		return parquet.Decimal(int(f.Scale), int(f.Precision), parquet.FixedLenByteArrayType(int(f.Size)))
	}
	return parquet.Leaf(parquet.ByteArrayType)
}

// coded returns the node of strings or bytes, with a dictionary if that is their form: pyarrow makes one of pages that
// are plain or have a dictionary, and of no others.
func coded(n parquet.Node, t tables.Type) parquet.Node {
	if t.Stored().Store == tables.Coded {
		return parquet.Encoded(n, &parquet.RLEDictionary)
	}
	return n
}

// unitOf returns the unit of a time or timestamp.
func unitOf(t tables.Type) parquet.TimeUnit {
	switch {
	case t.Nano:
		return parquet.Nanosecond
	case t.Stored().Unit == 3:
		return parquet.Millisecond
	}
	return parquet.Microsecond
}

// nodeOf returns the node of a type, which is required.
func nodeOf(t tables.Type) parquet.Node {
	switch t.Kind {
	case tables.Null:
		return parquet.Leaf(nothing{parquet.Int32Type})
	case tables.Bool:
		return parquet.Leaf(parquet.BooleanType)
	case tables.Int64:
		return parquet.Int(int(t.Bits))
	case tables.Uint64:
		return parquet.Uint(int(t.Bits))
	case tables.Decimal:
		return parquet.Decimal(int(t.Scale), int(t.Precision), parquet.FixedLenByteArrayType(decimalWidth(t)))
	case tables.Float64:
		if t.Bits == 64 {
			return parquet.Leaf(parquet.DoubleType)
		}
		if t.Bits == 16 {
			return parquet.Leaf(half{parquet.FixedLenByteArrayType(2)})
		}
		return parquet.Leaf(parquet.FloatType)
	case tables.String:
		if t.Stored().Extension == tables.ExtensionJSON {
			return coded(parquet.JSON(), t)
		}
		return coded(parquet.String(), t)
	case tables.Binary:
		return coded(binaryNode(t.Stored()), t)
	case tables.Timestamp:
		return parquet.TimestampAdjusted(unitOf(t), t.UTC)
	case tables.Date:
		return parquet.Date()
	case tables.Time:
		return parquet.TimeAdjusted(unitOf(t), false)
	case tables.List:
		if t.Stored().Store == tables.Map { // whose keys are never null
			key, value := t.Elem.Fields[0].Type, t.Elem.Fields[1].Type
			return parquet.Map(nodeOf(key), maybeNull(nodeOf(value), value))
		}
		return parquet.List(maybeNull(nodeOf(*t.Elem), *t.Elem))
	default:
		return groupOf(t.Fields)
	}
}
