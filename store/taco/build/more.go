package build

import (
	"context"

	"github.com/chaski-eo/chaski/internal/inorder"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/tables"
)

// More returns further columns of samples: for each level a table with a row for each of its samples, or nil. They
// replace columns of the same name.
type More func(ctx context.Context, levels []Level) ([]*tables.Table, error)

// Inspection computes columns from the bytes of files: see Options.Inspect.
type Inspection struct {
	// File is called once for each file, without padding, by several goroutines. r reads the bytes of the row of
	// Level.Rows with that number; File does not close it, and does not use it after it returns. File is nil if no
	// column needs the bytes.
	File func(ctx context.Context, level, row int, r source.Reader) error
	// Columns returns for each level a table with a row for each of its samples, or nil. It is called once, after
	// File was called for all files.
	Columns func(ctx context.Context) ([]*tables.Table, error)
}

// adds reports whether the options add columns.
func (o *Options) adds() bool { return o.More != nil || o.Inspect != nil }

// further returns the columns that the options add to levels, and adds them to these: without those of Inspect if once
// is set.
func (o *Options) further(ctx context.Context, levels []Level, once bool) ([]*tables.Table, error) {
	inspect := o.inspected
	if once || o.Inspect == nil {
		inspect = nil
	}
	tbls := make([]*tables.Table, len(levels))
	for _, step := range []More{o.More, inspect} {
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
			levels[k].Table = replaced(levels[k].Table, table)
			if tbls[k] != nil {
				table = replaced(tbls[k], table)
			}
			tbls[k] = table
		}
	}
	return tbls, nil
}

// replaced returns a table with further columns, which replace columns of the same names.
func replaced(t, by *tables.Table) *tables.Table {
	for _, c := range by.Columns() {
		t = t.Without(c.Name)
	}
	return tables.Join(t, by)
}

// shown returns levels for Options.More and Options.Inspect, which may change the tables.
func shown(levels []*Level) []Level {
	out := make([]Level, len(levels))
	for k, l := range levels {
		out[k] = *l
	}
	return out
}

// inspected reads all files for the columns of Inspect.
func (o *Options) inspected(ctx context.Context, levels []Level) ([]*tables.Table, error) {
	in := o.Inspect(levels)
	if in.File == nil {
		return in.Columns(ctx)
	}
	type at struct{ level, row int }
	var files []at
	for k := range levels {
		for i := range levels[k].Rows {
			if r := &levels[k].Rows[i]; !r.Folder && !r.Padding {
				files = append(files, at{k, i})
			}
		}
	}
	err := inorder.Do(ctx, len(files), o.Workers, func(ctx context.Context, i int) (struct{}, error) {
		p := files[i]
		file, err := levels[p.level].Rows[p.row].Open(ctx, o.Opener)
		if err != nil {
			return struct{}{}, err
		}
		err = in.File(ctx, p.level, p.row, file)
		if cerr := file.Close(); err == nil {
			err = cerr
		}
		return struct{}{}, err
	}, func(int, struct{}) error { return nil }, func(struct{}) {})
	if err != nil {
		return nil, err
	}
	return in.Columns(ctx)
}
