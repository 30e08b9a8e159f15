package catalog

import (
	"context"
	"math"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/catalog/internal/columns"
	"github.com/chaski-eo/chaski/tables"
)

// Data returns the dataset's table for queries: a row for each sample, and the stored columns with their types; of a
// CSV file those that Options.Columns names, or all with Options.AllColumns. Columns are read when they are first used,
// and stay in memory as long as the result. A directory has no table: fault.Unsupported.
func (t *Table) Data(ctx context.Context) (*tables.Table, error) {
	var out *tables.Table
	switch in := t.table.(type) {
	case *columns.ParquetTable:
		var err error
		if out, err = tables.Read(ctx, in.Reader, 0, in.Reader.Size(), tables.Options{}); err != nil {
			return nil, fault.WithFile(err, t.src)
		}
	case *columns.Held:
		if in.N > math.MaxInt32 {
			return nil, fault.WithFile(fault.New(fault.Limit, "table", fault.NoOffset, "%d rows", in.N), t.src)
		}
		out = heldData(in)
	default:
		return nil, fault.WithFile(fault.New(fault.Unsupported, "columns", fault.NoOffset,
			"a directory has none to compare: conditions need a table (.parquet, .csv or .tsv)"), t.src)
	}
	if t.order == nil {
		return out, nil
	}
	rows := make([]int, len(t.order))
	for i, row := range t.order {
		rows[i] = int(row)
	}
	return out.Take(rows), nil
}

// heldData returns the columns of a CSV file, or of items, that were read.
func heldData(in *columns.Held) *tables.Table {
	var cols []tables.Column
	var named []columns.Column
	for _, name := range in.Names {
		column := in.Columns[name]
		if column == nil {
			continue
		}
		typ := tables.Type{Kind: tables.String}
		switch kind := column.Kind(); {
		case columns.UnitOf(column) != 0:
			typ = tables.Type{Kind: tables.Timestamp, UTC: true}
		case kind == Int:
			typ = tables.Type{Kind: tables.Int64, Bits: 64}
		case kind == Float:
			typ = tables.Type{Kind: tables.Float64, Bits: 64}
		}
		cols, named = append(cols, tables.Column{Name: name, Type: typ}), append(named, column)
	}
	return tables.New(int(in.N), cols, func(ctx context.Context, i int) (*tables.Vector, error) {
		return vectorOf(ctx, named[i], cols[i].Type, int(in.N))
	})
}

// vectorOf returns all values of a column.
func vectorOf(ctx context.Context, c columns.Column, typ tables.Type, n int) (*tables.Vector, error) {
	nulls := make([]bool, n)
	var ints []int64
	var floats []float64
	var strs []string
	err := c.Scan(ctx, func(row int64, c columns.Cell) error {
		nulls[row] = c.Null
		switch typ.Kind {
		case tables.Int64, tables.Timestamp:
			ints = append(ints, c.Int)
		case tables.Float64:
			floats = append(floats, c.Float)
		default:
			strs = append(strs, string(c.Text))
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case typ.Kind == tables.Int64 || typ.Kind == tables.Timestamp:
		return tables.NewInts(typ, ints, nulls), nil
	case typ.Kind == tables.Float64:
		return tables.NewFloats(typ, floats, nulls), nil
	}
	return tables.NewStrings(strs, nulls), nil
}
