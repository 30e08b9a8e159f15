package rows

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/query"
)

// rowColumn is the column of the table that a query sees with the number of each row, by which its
// result is traced back to samples.
const rowColumn = "chaski:row"

// rowsWhere returns the rows of a table that meet a condition, ascending. Conditions that package
// query refuses go to Options.SQL, if it is set.
func rowsWhere(
	ctx context.Context, o *resources.Options, t *tables.Table, condition string,
) (rows []int, err error) {
	err = o.SQLLimits.Within(ctx, func(ctx context.Context) (err error) {
		rows, err = rowsThat(ctx, o, t, condition)
		return err
	})
	return rows, err
}

func rowsThat(ctx context.Context, o *resources.Options, t *tables.Table, condition string) ([]int, error) {
	rows, err := query.Where(ctx, t, condition)
	if o.SQL == nil || !query.Refused(err) {
		return rows, err
	}
	numbers := make([]int64, t.Len())
	for i := range numbers {
		numbers[i] = int64(i)
	}
	data := withRows(t, numbers)
	// The line ends after the condition, because the condition may end with a comment.
	sql := fmt.Sprintf("SELECT %q FROM data WHERE (%s\n)", rowColumn, condition)
	found, fullErr := o.SQL(ctx, sql, []string{"data"}, func(_ context.Context, name string) (*tables.Table, error) {
		if strings.EqualFold(name, "data") {
			return data, nil
		}
		return nil, query.NoTable(name, []string{"data"})
	}, o.SQLLimits.Memory)
	if fullErr != nil {
		return nil, query.Better(err, fullErr)
	}
	kept, err := rowNumbers(ctx, found, func(row int64) bool { return row >= 0 && row < int64(t.Len()) })
	slices.Sort(kept)
	return slices.Compact(kept), err
}

// withRows returns a table with the column chaski:row added.
func withRows(t *tables.Table, numbers []int64) *tables.Table {
	number := tables.NewInts(tables.Type{Kind: tables.Int64, Bits: 64}, numbers, nil)
	return tables.Join(t, tables.FromVectors([]string{rowColumn}, []*tables.Vector{number}))
}

// rowNumbers returns the column chaski:row of a result, which must exist. A number for which good is
// false is fault.Unsupported.
func rowNumbers(ctx context.Context, t *tables.Table, good func(row int64) bool) ([]int, error) {
	values, err := t.Column(ctx, rowColumn)
	if err != nil {
		return nil, err
	}
	rows := make([]int, t.Len())
	for i := range rows {
		row := int64(-1)
		if values.Kind() == tables.Int64 && !values.Null(i) {
			row = values.Int(i)
		}
		if !good(row) {
			return nil, fault.New(fault.Unsupported, "select", fault.NoOffset,
				"row %d of its result has no row of a sample in %q", i, rowColumn)
		}
		rows[i] = int(row)
	}
	return rows, nil
}

// int32s yields row numbers as int32.
func int32s(rows []int) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for _, row := range rows {
			if !yield(int32(row)) {
				return
			}
		}
	}
}

// ints converts row numbers to int.
func ints(rows []int32) []int {
	out := make([]int, len(rows))
	for i, row := range rows {
		out[i] = int(row)
	}
	return out
}
