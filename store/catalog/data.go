package catalog

import (
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tables"
)

// Data returns the dataset's table for queries: a row for each sample, and the stored columns with their types; of a
// CSV file those that Options.Columns names, or all with Options.AllColumns. Columns are read when they are first used,
// and stay in memory as long as the result. A directory has no table: fault.Unsupported.
func (t *Table) Data(ctx context.Context) (*tables.Table, error) {
	if t.table == nil {
		return nil, fault.WithFile(fault.New(fault.Unsupported, "columns", fault.NoOffset,
			"a directory has none to compare: conditions need a table (.parquet, .csv or .tsv)"), t.src)
	}
	out, err := t.table.Data(ctx)
	if err != nil {
		return nil, fault.WithFile(err, t.src)
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
