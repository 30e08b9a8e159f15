package build

import (
	"context"

	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/tables"
)

// Level is the samples of one level, before they are written: see Options.More and Options.Inspect.
type Level struct {
	Rows    []Row
	Columns []tables.Column // that the samples have already
	Table   *tables.Table   // with their values
}

// Row is a sample of a level.
type Row struct {
	ID      string
	Parent  int // the row in the level above; at level 0 the row itself
	Folder  bool
	Padding bool
	// URI is the file with the bytes, which are Head and then the Size ones from Offset on, or all if Offset is
	// taco.Whole. It is "" if Bytes has them, and of a folder.
	URI          string
	Offset, Size int64
	Head         string
	Bytes        []byte
}

// Chain returns an Options.More that calls several in turn, and skips nil. Each sees the columns of the steps before
// it, and its columns replace columns of the same names.
func Chain(steps ...func(ctx context.Context, levels []Level) ([]*tables.Table, error)) func(ctx context.Context,
	levels []Level) ([]*tables.Table, error) {
	return func(ctx context.Context, levels []Level) ([]*tables.Table, error) {
		tbls := make([]*tables.Table, len(levels))
		for _, step := range steps {
			if step == nil {
				continue
			}
			added, err := step(ctx, levels)
			if err != nil {
				return nil, err
			}
			for k, table := range added {
				if table == nil {
					continue
				}
				levels[k].Add(table)
				if tbls[k] != nil {
					table = replaced(tbls[k], table)
				}
				tbls[k] = table
			}
		}
		return tbls, nil
	}
}

// replaced returns a table with further columns, which replace columns of the same names.
func replaced(t, by *tables.Table) *tables.Table {
	for _, c := range by.Columns() {
		t = t.Without(c.Name)
	}
	return tables.Join(t, by)
}

// Add adds columns with a row for each sample, which replace columns of the same names.
func (l *Level) Add(t *tables.Table) {
	l.Table = replaced(l.Table, t)
	l.Columns = l.Table.Columns()
}

// described returns the level for Options.More and Options.Inspect.
func (l *level) described() Level {
	out := Level{Rows: make([]Row, len(l.ids)), Columns: l.columns.Columns(), Table: l.columns}
	for i := range l.ids {
		out.Rows[i] = l.row(i)
	}
	return out
}

// row returns row i for Options.More and Options.Inspect.
func (l *level) row(i int) Row { return l.content[i].row(l.ids[i], int(l.parents[i]), l.folders[i]) }

// row returns a row for Options.More and Options.Inspect.
func (c *content) row(id string, parent int, folder bool) Row {
	row := Row{ID: id, Parent: parent, Folder: folder, Padding: c.padding, Offset: taco.Whole}
	switch {
	case folder:
	case c.bytes != nil:
		row.Bytes = c.bytes
	case c.entry != nil:
		row.URI, row.Offset, row.Size, row.Head = c.entry.URI, c.entry.Offset, c.entry.Size, c.entry.Head
	default:
		row.URI = c.file
	}
	return row
}
