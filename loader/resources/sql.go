package resources

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/query"
)

// RowColumn has the number of a row of level 0 in the table that a query sees.
const RowColumn = "chaski:row"

// Query runs a query over the tables with some names.
func (o *Options) Query(ctx context.Context, sql string, names []string, from query.Tables) (*tables.Table, error) {
	return query.RunOr(ctx, sql, names, from, o.SQL)
}

// Where returns the rows of a table that meet a condition, in order.
func (o *Options) Where(ctx context.Context, t *tables.Table, condition string) ([]int, error) {
	rows, err := query.Where(ctx, t, condition)
	if o.SQL == nil || !query.Refused(err) {
		return rows, err
	}
	numbers := make([]int64, t.Len())
	for i := range numbers {
		numbers[i] = int64(i)
	}
	data := WithRows(t, numbers)
	// A comment at the end of the condition ends with its line.
	sql := fmt.Sprintf("SELECT %q FROM data WHERE (%s\n)", RowColumn, condition)
	found, fullErr := o.SQL(ctx, sql, []string{"data"}, func(_ context.Context, name string) (*tables.Table, error) {
		if strings.EqualFold(name, "data") {
			return data, nil
		}
		return nil, query.NoTable(name, []string{"data"})
	})
	if fullErr != nil {
		return nil, query.Better(err, fullErr)
	}
	at, err := RowNumbers(ctx, found, func(row int64) bool { return row >= 0 && row < int64(t.Len()) })
	slices.Sort(at)
	return slices.Compact(at), err
}

// WithRows returns a table with the column chaski:row.
func WithRows(t *tables.Table, numbers []int64) *tables.Table {
	number := tables.NewInts(tables.Type{Kind: tables.Int64, Bits: 64}, numbers, nil)
	return tables.Join(t, tables.FromVectors([]string{RowColumn}, []*tables.Vector{number}))
}

// RowNumbers returns what the column chaski:row of a result has, which must be there and be good.
func RowNumbers(ctx context.Context, t *tables.Table, good func(row int64) bool) ([]int, error) {
	v, err := t.Column(ctx, RowColumn)
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
			return nil, fault.New(fault.Unsupported, "select", fault.NoOffset,
				"row %d of its result has no row of a sample in %q", i, RowColumn)
		}
		rows[i] = int(row)
	}
	return rows, nil
}
