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
	case *columns.Shards:
		parts := make([]*tables.Table, len(in.Tables))
		for i, shard := range in.Tables {
			var err error
			if parts[i], err = tables.Read(ctx, shard.Reader, 0, shard.Reader.Size(), tables.Options{}); err != nil {
				return nil, fault.WithFile(err, in.Names[i])
			}
		}
		var err error
		if out, err = tables.Concat(parts, tables.Mixed); err != nil {
			return nil, fault.WithFile(err, t.src)
		}
	case *columns.Held:
		if in.N > math.MaxInt32 {
			return nil, fault.WithFile(fault.New(fault.Limit, "table", fault.NoOffset, "%d rows", in.N), t.src)
		}
		out = in.Data()
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
