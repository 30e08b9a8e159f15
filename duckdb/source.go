package duckdb

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strings"
	"time"

	duck "github.com/duckdb/duckdb-go/v2"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tables"
)

// addTable makes a table visible under a name, as a view over a function that returns its rows.
func addTable(ctx context.Context, conn *sql.Conn, number int, name string, t *tables.Table) error {
	src := &rowSource{ctx: ctx, t: t}
	for _, c := range t.Columns() {
		info, err := typeInfo(c.Type)
		if err != nil {
			return fmt.Errorf("column %s: %w", c.Name, err)
		}
		src.cols = append(src.cols, duck.ColumnInfo{Name: c.Name, T: info})
	}
	if len(src.cols) == 0 {
		return nil
	}
	function := fmt.Sprintf("chaski_table_%d", number)
	err := duck.RegisterTableUDF(conn, function, duck.ParallelChunkTableFunction{
		BindArguments: func(map[string]any, ...any) (duck.ParallelChunkTableSource, error) { return src, nil },
	})
	if err != nil {
		return err
	}
	_, err = conn.ExecContext(ctx, fmt.Sprintf(`CREATE VIEW "%s" AS SELECT * FROM %s()`,
		strings.ReplaceAll(name, `"`, `""`), function))
	return err
}

// rowSource passes a table to DuckDB, in order. It keeps no state: each scan has its own.
type rowSource struct {
	ctx  context.Context
	t    *tables.Table
	cols []duck.ColumnInfo
}

// scan is the position of one scan, and the columns that it uses.
type scan struct {
	row  int
	cols []*tables.Vector // nil for columns that the query does not use
}

func (s *rowSource) ColumnInfos() []duck.ColumnInfo { return s.cols }

func (s *rowSource) Cardinality() *duck.CardinalityInfo {
	return &duck.CardinalityInfo{Cardinality: uint(s.t.Len()), Exact: true}
}

// Init asks for one thread, so that rows come in the order of the table.
func (s *rowSource) Init() duck.ParallelTableSourceInfo {
	return duck.ParallelTableSourceInfo{MaxThreads: 1}
}

func (s *rowSource) NewLocalState() any { return &scan{} }

func (s *rowSource) FillChunk(state any, chunk duck.DataChunk) error {
	at := state.(*scan)
	n := min(duck.GetDataChunkCapacity(), s.t.Len()-at.row)
	if n > 0 && at.cols == nil {
		if err := s.open(at, chunk); err != nil {
			return err
		}
	}
	for i, v := range at.cols {
		if v == nil {
			continue
		}
		for k := range n {
			if err := chunk.SetValue(i, k, value(v, at.row+k)); err != nil {
				return err
			}
		}
	}
	at.row += n
	return chunk.SetSize(n)
}

// open loads the columns that the scan uses.
func (s *rowSource) open(at *scan, chunk duck.DataChunk) error {
	at.cols = make([]*tables.Vector, len(s.cols))
	for i := range s.cols {
		if err := chunk.SetValue(i, 0, zero(s.t.Columns()[i].Type)); err != nil {
			return err
		}
		if _, err := chunk.GetValue(i, 0); err != nil {
			continue // the driver cannot tell whether a column is projected, but then it cannot read it back
		}
		var err error
		if at.cols[i], err = s.t.At(s.ctx, i); err != nil {
			return err
		}
		if err := holdsTimes(s.t.Columns()[i], at.cols[i]); err != nil {
			return err
		}
	}
	return nil
}

var plainTypes = map[tables.Kind]duck.Type{tables.Null: duck.TYPE_INTEGER, tables.Bool: duck.TYPE_BOOLEAN,
	tables.String: duck.TYPE_VARCHAR, tables.Binary: duck.TYPE_BLOB, tables.Timestamp: duck.TYPE_TIMESTAMP,
	tables.Date: duck.TYPE_DATE,
	tables.Time: duck.TYPE_TIME}

// holdsTimes refuses timestamps that TIMESTAMP_NS does not hold. A file that counts nanoseconds has none, but one that
// it was joined with may.
func holdsTimes(c tables.Column, v *tables.Vector) error {
	if c.Type.Kind != tables.Timestamp || !c.Type.Nano {
		return nil
	}
	for i, us := range v.Ints() {
		if !v.Null(i) && (us >= math.MaxInt64/1000 || us <= math.MinInt64/1000) {
			return fault.New(fault.Unsupported, "column "+c.Name, fault.NoOffset,
				"the timestamp %s is out of the range of 64 bits of nanoseconds", tables.FormatTimestamp(us))
		}
	}
	return nil
}

// typeInfo returns DuckDB's type for one of ours. Timestamps are TIMESTAMP or TIMESTAMP_NS, never with a time zone: all
// are in UTC.
func typeInfo(t tables.Type) (duck.TypeInfo, error) {
	switch t.Kind {
	case tables.Timestamp:
		if t.Nano {
			return duck.NewTypeInfo(duck.TYPE_TIMESTAMP_NS)
		}
	case tables.Int64:
		return duck.NewTypeInfo(map[uint8]duck.Type{8: duck.TYPE_TINYINT, 16: duck.TYPE_SMALLINT,
			32: duck.TYPE_INTEGER, 64: duck.TYPE_BIGINT}[t.Bits])
	case tables.Uint64:
		return duck.NewTypeInfo(map[uint8]duck.Type{8: duck.TYPE_UTINYINT, 16: duck.TYPE_USMALLINT,
			32: duck.TYPE_UINTEGER, 64: duck.TYPE_UBIGINT}[t.Bits])
	case tables.Float64:
		if t.Bits < 64 {
			return duck.NewTypeInfo(duck.TYPE_FLOAT)
		}
		return duck.NewTypeInfo(duck.TYPE_DOUBLE)
	case tables.Decimal:
		return duck.NewDecimalInfo(t.Precision, t.Scale)
	case tables.List:
		elem, err := typeInfo(*t.Elem)
		if err != nil {
			return nil, err
		}
		return duck.NewListInfo(elem)
	case tables.Struct:
		var entries []duck.StructEntry
		for _, f := range t.Fields {
			info, err := typeInfo(f.Type)
			if err != nil {
				return nil, err
			}
			e, err := duck.NewStructEntry(info, f.Name)
			if err != nil {
				return nil, err
			}
			entries = append(entries, e)
		}
		if len(entries) == 0 {
			return nil, fmt.Errorf("a struct without fields")
		}
		return duck.NewStructInfo(entries[0], entries[1:]...)
	}
	return duck.NewTypeInfo(plainTypes[t.Kind])
}

// zero returns a value of a type for open to write and read back. The driver does not read a null back.
func zero(t tables.Type) any {
	switch t.Kind {
	case tables.Null:
		return int64(0)
	case tables.List:
		return []any{}
	case tables.Struct:
		out := map[string]any{}
		for _, f := range t.Fields {
			out[f.Name] = zero(f.Type)
		}
		return out
	case tables.Decimal:
		return duck.Decimal{Width: t.Precision, Scale: t.Scale, Value: new(big.Int)}
	case tables.Float64:
		return value(tables.NewFloats(t, []float64{0}, nil), 0)
	case tables.String, tables.Binary:
		return value(tables.NewBytes(t, nil, []uint32{0, 0}, nil), 0)
	}
	return value(tables.NewInts(t, []int64{0}, nil), 0)
}

// value returns a cell in the driver's form.
func value(v *tables.Vector, i int) any {
	if v.Null(i) {
		return nil
	}
	switch t := v.Type(); t.Kind {
	case tables.Bool:
		return v.Int(i) != 0
	case tables.Uint64:
		return uint64(v.Int(i))
	case tables.Decimal:
		return duck.Decimal{Width: t.Precision, Scale: t.Scale, Value: v.Big(i)}
	case tables.Float64:
		return v.Float(i)
	case tables.String:
		return v.Str(i)
	case tables.Binary:
		return v.Bytes(i)
	case tables.Timestamp, tables.Time:
		at := time.UnixMicro(v.Int(i)).UTC()
		if ns := v.Nanos(); ns != nil {
			at = at.Add(time.Duration(ns[i]))
		}
		return at
	case tables.Date:
		return time.Unix(v.Int(i)*86400, 0).UTC()
	case tables.List:
		child, lo, hi := v.List(i)
		out := make([]any, 0, hi-lo)
		for k := lo; k < hi; k++ {
			out = append(out, value(child, k))
		}
		return out
	case tables.Struct:
		out := map[string]any{}
		for k, f := range t.Fields {
			out[f.Name] = value(v.Field(k), i)
		}
		return out
	}
	return v.Int(i)
}

// vector makes a column from the driver's values.
func vector(info duck.TypeInfo, cells []any) (*tables.Vector, error) {
	nulls := make([]bool, len(cells))
	for i, c := range cells {
		nulls[i] = c == nil
	}
	switch typ := info.InternalType(); typ {
	case duck.TYPE_LIST, duck.TYPE_ARRAY:
		return listVector(info, cells, nulls)
	case duck.TYPE_STRUCT:
		return structVector(info, cells, nulls)
	case duck.TYPE_FLOAT, duck.TYPE_DOUBLE:
		out := make([]float64, len(cells))
		bits := uint8(64)
		for i, c := range cells {
			switch x := c.(type) {
			case float32:
				out[i], bits = float64(x), 32
			case float64:
				out[i] = x
			}
		}
		return tables.NewFloats(tables.Type{Kind: tables.Float64, Bits: bits}, out, nulls), nil
	case duck.TYPE_HUGEINT, duck.TYPE_DECIMAL:
		return bigVector(cells, nulls)
	case duck.TYPE_BLOB:
		return bytesVector(tables.Binary, cells, nulls)
	case duck.TYPE_SQLNULL:
		return tables.NewNulls(tables.Type{}, len(cells)), nil
	default:
		if t, ok := intTypes[typ]; ok {
			return intVector(t, cells, nulls)
		}
	}
	return bytesVector(tables.String, cells, nulls)
}

var intTypes = map[duck.Type]tables.Type{
	duck.TYPE_BOOLEAN: {Kind: tables.Bool}, duck.TYPE_TINYINT: {Kind: tables.Int64, Bits: 8},
	duck.TYPE_SMALLINT: {Kind: tables.Int64, Bits: 16},
	duck.TYPE_INTEGER:  {Kind: tables.Int64, Bits: 32}, duck.TYPE_BIGINT: {Kind: tables.Int64, Bits: 64},
	duck.TYPE_UTINYINT: {Kind: tables.Uint64, Bits: 8}, duck.TYPE_USMALLINT: {Kind: tables.Uint64, Bits: 16},
	duck.TYPE_UINTEGER: {Kind: tables.Uint64, Bits: 32}, duck.TYPE_UBIGINT: {Kind: tables.Uint64, Bits: 64},
	duck.TYPE_TIMESTAMP: {Kind: tables.Timestamp}, duck.TYPE_TIMESTAMP_S: {Kind: tables.Timestamp},
	duck.TYPE_TIMESTAMP_MS: {Kind: tables.Timestamp},
	duck.TYPE_TIMESTAMP_NS: {Kind: tables.Timestamp, Nano: true},
	duck.TYPE_TIMESTAMP_TZ: {Kind: tables.Timestamp, UTC: true},
	duck.TYPE_DATE:         {Kind: tables.Date}, duck.TYPE_TIME: {Kind: tables.Time},
}

func intVector(t tables.Type, cells []any, nulls []bool) (*tables.Vector, error) {
	out, ns := make([]int64, len(cells)), []int64(nil)
	if t.Nano {
		ns = make([]int64, len(cells))
	}
	for i, c := range cells {
		switch x := c.(type) {
		case nil:
		case bool:
			if x {
				out[i] = 1
			}
		case time.Time:
			switch t.Kind {
			case tables.Date:
				out[i] = int64(math.Floor(float64(x.Unix()) / 86400))
			case tables.Time:
				out[i] = ((int64(x.Hour())*60+int64(x.Minute()))*60+int64(x.Second()))*1e6 + int64(x.Nanosecond()/1000)
			default:
				if out[i] = x.UnixMicro(); ns != nil {
					ns[i] = int64(x.Nanosecond() % 1000)
				}
			}
		default:
			switch number := reflect.ValueOf(c); {
			case number.CanInt():
				out[i] = number.Int()
			case number.CanUint():
				out[i] = int64(number.Uint())
			default:
				return nil, fmt.Errorf("a value of type %T", c)
			}
		}
	}
	if ns != nil {
		return tables.NewTimes(t, out, ns, nulls), nil
	}
	return tables.NewInts(t, out, nulls), nil
}

func bigVector(cells []any, nulls []bool) (*tables.Vector, error) {
	lo, hi := make([]int64, len(cells)), make([]int64, len(cells))
	t := tables.Type{Kind: tables.Decimal, Precision: 38} // a HUGEINT
	for i, c := range cells {
		var x *big.Int
		switch y := c.(type) {
		case nil:
			continue
		case *big.Int:
			x = y
		case duck.Decimal:
			x = y.Value
			t = tables.Type{Kind: tables.Decimal, Precision: y.Width, Scale: y.Scale}
		default:
			return nil, fmt.Errorf("a value of type %T", c)
		}
		lo[i] = int64(new(big.Int).And(x, new(big.Int).SetUint64(math.MaxUint64)).Uint64())
		hi[i] = new(big.Int).Rsh(x, 64).Int64()
	}
	return tables.NewBigs(t, lo, hi, nulls), nil
}

func bytesVector(kind tables.Kind, cells []any, nulls []bool) (*tables.Vector, error) {
	var data []byte
	offs := make([]uint32, 1, len(cells)+1)
	for _, c := range cells {
		switch x := c.(type) {
		case nil:
		case string:
			data = append(data, x...)
		case []byte:
			data = append(data, x...)
		default: // intervals, UUIDs, maps, …
			data = fmt.Append(data, x)
		}
		if len(data) > math.MaxUint32 {
			return nil, fmt.Errorf("strings of more than 4 GiB")
		}
		offs = append(offs, uint32(len(data)))
	}
	return tables.NewBytes(tables.Type{Kind: kind}, data, offs, nulls), nil
}

func listVector(info duck.TypeInfo, cells []any, nulls []bool) (*tables.Vector, error) {
	var child duck.TypeInfo
	switch d := info.Details().(type) {
	case *duck.ListDetails:
		child = d.Child
	case *duck.ArrayDetails:
		child = d.Child
	default:
		return bytesVector(tables.String, cells, nulls)
	}
	offs := make([]uint32, 1, len(cells)+1)
	var elems []any
	for _, c := range cells {
		if l, ok := c.([]any); ok {
			elems = append(elems, l...)
		} else if c != nil {
			return nil, fmt.Errorf("a list of type %T", c)
		}
		offs = append(offs, uint32(len(elems)))
	}
	v, err := vector(child, elems)
	if err != nil {
		return nil, err
	}
	return tables.NewList(v, offs, nulls), nil
}

func structVector(info duck.TypeInfo, cells []any, nulls []bool) (*tables.Vector, error) {
	d, ok := info.Details().(*duck.StructDetails)
	if !ok {
		return bytesVector(tables.String, cells, nulls)
	}
	var names []string
	var fields []*tables.Vector
	for _, e := range d.Entries {
		part := make([]any, len(cells))
		for i, c := range cells {
			if m, ok := c.(map[string]any); ok {
				part[i] = m[e.Name()]
			}
		}
		v, err := vector(e.Info(), part)
		if err != nil {
			return nil, err
		}
		names, fields = append(names, e.Name()), append(fields, v)
	}
	return tables.NewStruct(names, fields, nulls), nil
}
