package loader

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/query"
)

// query runs a query over the tables with some names.
func (o *Options) query(ctx context.Context, sql string, names []string, from query.Tables) (*tables.Table, error) {
	return query.RunOr(ctx, sql, names, from, o.SQL)
}

// where returns the rows of a table that meet a condition, in order.
func (o *Options) where(ctx context.Context, t *tables.Table, condition string) ([]int, error) {
	rows, err := query.Where(ctx, t, condition)
	if o.SQL == nil || !query.Refused(err) {
		return rows, err
	}
	numbers := make([]int64, t.Len())
	for i := range numbers {
		numbers[i] = int64(i)
	}
	data := withRows(t, numbers)
	// A comment at the end of the condition ends with its line.
	sql := fmt.Sprintf("SELECT %q FROM data WHERE (%s\n)", rowColumn, condition)
	found, fullErr := o.SQL(ctx, sql, []string{"data"}, func(_ context.Context, name string) (*tables.Table, error) {
		if strings.EqualFold(name, "data") {
			return data, nil
		}
		return nil, query.NoTable(name, []string{"data"})
	})
	if fullErr != nil {
		return nil, query.Better(err, fullErr)
	}
	at, err := rowNumbers(ctx, found, func(row int64) bool { return row >= 0 && row < int64(t.Len()) })
	slices.Sort(at)
	return slices.Compact(at), err
}

// withRows returns a table with the column chaski:row.
func withRows(t *tables.Table, numbers []int64) *tables.Table {
	number := tables.NewInts(tables.Type{Kind: tables.Int64, Bits: 64}, numbers, nil)
	return tables.Join(t, tables.FromVectors([]string{rowColumn}, []*tables.Vector{number}))
}

// rowNumbers returns what the column chaski:row of a result has, which must be there and be good.
func rowNumbers(ctx context.Context, t *tables.Table, good func(row int64) bool) ([]int, error) {
	v, err := t.Column(ctx, rowColumn)
	if err != nil {
		return nil, err
	}
	rows := make([]int, t.Len())
	for i := range rows {
		row := int64(-1)
		if v.Kind() == tables.Int64 && !v.Null(i) {
			row = v.Int(i)
		}
		if !good(row) {
			return nil, fault.New(fault.Unsupported, "select", fault.NoOffset, "row %d of its result has no row of a sample in %q", i, rowColumn)
		}
		rows[i] = int(row)
	}
	return rows, nil
}
