package duckdb

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"math/big"
	"strings"
	"time"

	duck "github.com/duckdb/duckdb-go/v2"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/taco/table"
)

// addTable makes a table visible under a name: a view over a function that hands out its rows.
func addTable(ctx context.Context, conn *sql.Conn, number int, name string, t *table.Table) error {
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
	_, err = conn.ExecContext(ctx, fmt.Sprintf(`CREATE VIEW "%s" AS SELECT * FROM %s()`, strings.ReplaceAll(name, `"`, `""`), function))
	return err
}

// rowSource hands a table to DuckDB, in order. It keeps no state: each scan has its own.
type rowSource struct {
	ctx  context.Context
	t    *table.Table
	cols []duck.ColumnInfo
}

// scan is where one scan stands, and the columns that it wants.
type scan struct {
	row  int
	cols []*table.Vector // nil: not wanted
}

func (s *rowSource) ColumnInfos() []duck.ColumnInfo { return s.cols }

func (s *rowSource) Cardinality() *duck.CardinalityInfo {
	return &duck.CardinalityInfo{Cardinality: uint(s.t.Len()), Exact: true}
}

// Init asks for one thread: rows come in the order of the table.
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

// open loads the columns that the scan wants.
func (s *rowSource) open(at *scan, chunk duck.DataChunk) error {
	at.cols = make([]*table.Vector, len(s.cols))
	for i := range s.cols {
		if err := chunk.SetValue(i, 0, zero(s.t.Columns()[i].Type)); err != nil {
			return err
		}
		if _, err := chunk.GetValue(i, 0); err != nil {
			continue // the driver's way of saying that the column is not projected
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

var plainTypes = map[table.Kind]duck.Type{table.Null: duck.TYPE_INTEGER, table.Bool: duck.TYPE_BOOLEAN, table.Huge: duck.TYPE_HUGEINT,
	table.Text: duck.TYPE_VARCHAR, table.Binary: duck.TYPE_BLOB, table.Timestamp: duck.TYPE_TIMESTAMP, table.Date: duck.TYPE_DATE,
	table.Time: duck.TYPE_TIME}

// holdsTimes refuses instants that TIMESTAMP_NS does not hold: a file that counts nanoseconds has none, one that it was joined
// with may.
func holdsTimes(c table.Column, v *table.Vector) error {
	if c.Type.Kind != table.Timestamp || !c.Type.Nano {
		return nil
	}
	for i, us := range v.Ints() {
		if !v.Null(i) && (us >= math.MaxInt64/1000 || us <= math.MinInt64/1000) {
			return fault.New(fault.Unsupported, "column "+c.Name, fault.NoOffset, "the instant %s, which 64 bits of nanoseconds do not hold", table.FormatTimestamp(us))
		}
	}
	return nil
}

// typeInfo returns DuckDB's type for one of ours. Instants are TIMESTAMP, or TIMESTAMP_NS: all of them are of UTC.
func typeInfo(t table.Type) (duck.TypeInfo, error) {
	switch t.Kind {
	case table.Timestamp:
		if t.Nano {
			return duck.NewTypeInfo(duck.TYPE_TIMESTAMP_NS)
		}
	case table.Int64:
		return duck.NewTypeInfo(map[uint8]duck.Type{8: duck.TYPE_TINYINT, 16: duck.TYPE_SMALLINT, 32: duck.TYPE_INTEGER, 64: duck.TYPE_BIGINT}[t.Bits])
	case table.Uint64:
		return duck.NewTypeInfo(map[uint8]duck.Type{8: duck.TYPE_UTINYINT, 16: duck.TYPE_USMALLINT, 32: duck.TYPE_UINTEGER, 64: duck.TYPE_UBIGINT}[t.Bits])
	case table.Float64:
		if t.Bits < 64 {
			return duck.NewTypeInfo(duck.TYPE_FLOAT)
		}
		return duck.NewTypeInfo(duck.TYPE_DOUBLE)
	case table.Decimal:
		return duck.NewDecimalInfo(t.Precision, t.Scale)
	case table.List:
		elem, err := typeInfo(*t.Elem)
		if err != nil {
			return nil, err
		}
		return duck.NewListInfo(elem)
	case table.Struct:
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

// zero returns a value of a type. A null would do, but the driver does not take a null back.
func zero(t table.Type) any {
	switch t.Kind {
	case table.Null:
		return int64(0)
	case table.List:
		return []any{}
	case table.Struct:
		out := map[string]any{}
		for _, f := range t.Fields {
			out[f.Name] = zero(f.Type)
		}
		return out
	case table.Huge:
		return new(big.Int)
	case table.Decimal:
		return duck.Decimal{Width: t.Precision, Scale: t.Scale, Value: new(big.Int)}
	case table.Float64:
		return value(table.NewFloats(t, []float64{0}, nil), 0)
	case table.Text, table.Binary:
		return value(table.NewBytes(t, nil, []uint32{0, 0}, nil), 0)
	}
	return value(table.NewInts(t, []int64{0}, nil), 0)
}

// value returns a cell as the driver takes it.
func value(v *table.Vector, i int) any {
	if v.Null(i) {
		return nil
	}
	switch t := v.Type(); t.Kind {
	case table.Bool:
		return v.Int(i) != 0
	case table.Uint64:
		return uint64(v.Int(i))
	case table.Huge:
		return v.Big(i)
	case table.Decimal:
		return duck.Decimal{Width: t.Precision, Scale: t.Scale, Value: v.Big(i)}
	case table.Float64:
		return v.Float(i)
	case table.Text:
		return v.Text(i)
	case table.Binary:
		return v.Bytes(i)
	case table.Timestamp, table.Time:
		at := time.UnixMicro(v.Int(i)).UTC()
		if ns := v.Nanos(); ns != nil {
			at = at.Add(time.Duration(ns[i]))
		}
		return at
	case table.Date:
		return time.Unix(v.Int(i)*86400, 0).UTC()
	case table.List:
		child, lo, hi := v.List(i)
		out := make([]any, 0, hi-lo)
		for k := lo; k < hi; k++ {
			out = append(out, value(child, k))
		}
		return out
	case table.Struct:
		out := map[string]any{}
		for k, f := range t.Fields {
			out[f.Name] = value(v.Field(k), i)
		}
		return out
	}
	return v.Int(i)
}

// vector makes a column of the driver's values.
func vector(info duck.TypeInfo, cells []any) (*table.Vector, error) {
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
		return table.NewFloats(table.Type{Kind: table.Float64, Bits: bits}, out, nulls), nil
	case duck.TYPE_HUGEINT, duck.TYPE_DECIMAL:
		return bigVector(cells, nulls)
	case duck.TYPE_BLOB:
		return bytesVector(table.Binary, cells, nulls)
	case duck.TYPE_SQLNULL:
		return table.NewNulls(table.Type{}, len(cells)), nil
	default:
		if t, ok := intTypes[typ]; ok {
			return intVector(t, cells, nulls)
		}
	}
	return bytesVector(table.Text, cells, nulls)
}

var intTypes = map[duck.Type]table.Type{
	duck.TYPE_BOOLEAN: {Kind: table.Bool}, duck.TYPE_TINYINT: {Kind: table.Int64, Bits: 8}, duck.TYPE_SMALLINT: {Kind: table.Int64, Bits: 16},
	duck.TYPE_INTEGER: {Kind: table.Int64, Bits: 32}, duck.TYPE_BIGINT: {Kind: table.Int64, Bits: 64},
	duck.TYPE_UTINYINT: {Kind: table.Uint64, Bits: 8}, duck.TYPE_USMALLINT: {Kind: table.Uint64, Bits: 16},
	duck.TYPE_UINTEGER: {Kind: table.Uint64, Bits: 32}, duck.TYPE_UBIGINT: {Kind: table.Uint64, Bits: 64},
	duck.TYPE_TIMESTAMP: {Kind: table.Timestamp}, duck.TYPE_TIMESTAMP_S: {Kind: table.Timestamp}, duck.TYPE_TIMESTAMP_MS: {Kind: table.Timestamp},
	duck.TYPE_TIMESTAMP_NS: {Kind: table.Timestamp, Nano: true}, duck.TYPE_TIMESTAMP_TZ: {Kind: table.Timestamp, UTC: true},
	duck.TYPE_DATE: {Kind: table.Date}, duck.TYPE_TIME: {Kind: table.Time},
}

func intVector(t table.Type, cells []any, nulls []bool) (*table.Vector, error) {
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
		case int8:
			out[i] = int64(x)
		case int16:
			out[i] = int64(x)
		case int32:
			out[i] = int64(x)
		case int64:
			out[i] = x
		case uint8:
			out[i] = int64(x)
		case uint16:
			out[i] = int64(x)
		case uint32:
			out[i] = int64(x)
		case uint64:
			out[i] = int64(x)
		case time.Time:
			switch t.Kind {
			case table.Date:
				out[i] = floorDiv(x.Unix(), 86400)
			case table.Time:
				out[i] = ((int64(x.Hour())*60+int64(x.Minute()))*60+int64(x.Second()))*1e6 + int64(x.Nanosecond()/1000)
			default:
				if out[i] = x.UnixMicro(); ns != nil {
					ns[i] = int64(x.Nanosecond() % 1000)
				}
			}
		default:
			return nil, fmt.Errorf("a value of type %T", c)
		}
	}
	if ns != nil {
		return table.NewTimes(t, out, ns, nulls), nil
	}
	return table.NewInts(t, out, nulls), nil
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

func bigVector(cells []any, nulls []bool) (*table.Vector, error) {
	lo, hi := make([]int64, len(cells)), make([]int64, len(cells))
	t := table.Type{Kind: table.Huge}
	for i, c := range cells {
		var x *big.Int
		switch y := c.(type) {
		case nil:
			continue
		case *big.Int:
			x = y
		case duck.Decimal:
			x = y.Value
			t = table.Type{Kind: table.Decimal, Precision: y.Width, Scale: y.Scale}
		default:
			return nil, fmt.Errorf("a value of type %T", c)
		}
		lo[i] = int64(new(big.Int).And(x, new(big.Int).SetUint64(math.MaxUint64)).Uint64())
		hi[i] = new(big.Int).Rsh(x, 64).Int64()
	}
	return table.NewBigs(t, lo, hi, nulls), nil
}

func bytesVector(kind table.Kind, cells []any, nulls []bool) (*table.Vector, error) {
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
			return nil, fmt.Errorf("texts of more than 4 GiB")
		}
		offs = append(offs, uint32(len(data)))
	}
	return table.NewBytes(table.Type{Kind: kind}, data, offs, nulls), nil
}

func listVector(info duck.TypeInfo, cells []any, nulls []bool) (*table.Vector, error) {
	var child duck.TypeInfo
	switch d := info.Details().(type) {
	case *duck.ListDetails:
		child = d.Child
	case *duck.ArrayDetails:
		child = d.Child
	default:
		return bytesVector(table.Text, cells, nulls)
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
	return table.NewList(v, offs, nulls), nil
}

func structVector(info duck.TypeInfo, cells []any, nulls []bool) (*table.Vector, error) {
	d, ok := info.Details().(*duck.StructDetails)
	if !ok {
		return bytesVector(table.Text, cells, nulls)
	}
	var names []string
	var fields []*table.Vector
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
	return table.NewStruct(names, fields, nulls), nil
}
