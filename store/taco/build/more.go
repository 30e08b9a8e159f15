package build

import (
	"context"
	"errors"

	"github.com/chaski-eo/chaski/fault"
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

// more adds the columns of the options to the levels. The columns of Options.Inspect are left to complete if files are
// inspected while they are copied.
func (w *writer) more(ctx context.Context) error {
	if w.o.More != nil {
		added, err := w.o.More(ctx, shown(w.levels))
		if err == nil {
			err = w.add(added)
		}
		if err != nil {
			return err
		}
	}
	if w.o.Inspect == nil {
		return nil
	}
	in := w.o.Inspect(shown(w.levels))
	if w.inspection = &in; w.readsOnce() {
		return nil
	}
	if err := w.inspectAll(ctx); err != nil {
		return err
	}
	return w.inspected(ctx)
}

// add adds columns to the levels.
func (w *writer) add(added []*tables.Table) error {
	for k, table := range added {
		if table == nil {
			continue
		}
		level := w.levels[k]
		if table.Len() != len(level.Rows) {
			return fault.New(fault.Unsupported, levelName(k), fault.NoOffset, "%d rows of columns for %d samples",
				table.Len(), len(level.Rows))
		}
		if err := checkColumns(table, k); err != nil {
			return err
		}
		level.Table = replaced(level.Table, table)
	}
	return nil
}

// readsOnce reports whether files are inspected while they are copied. That needs a form whose tables are written after
// the files, and in which the columns say nothing about their order.
func (w *writer) readsOnce() bool {
	whole := w.o.Form == ZIP || w.o.Form == Folder || w.o.Form.Named()
	return w.files != nil && whole && !w.o.split()
}

// inspectAll hands all files to the inspection.
func (w *writer) inspectAll(ctx context.Context) error {
	if w.inspection.File == nil {
		return nil
	}
	var files []place
	for k, level := range w.levels {
		for i := range level.Rows {
			if r := &level.Rows[i]; !r.Folder && !r.Padding {
				files = append(files, place{level: k, row: i})
			}
		}
	}
	return inorder.Do(ctx, len(files), w.o.Workers, func(ctx context.Context, i int) (struct{}, error) {
		p := files[i]
		file, err := w.levels[p.level].Rows[p.row].Open(ctx, w.o.Opener)
		if err != nil {
			return struct{}{}, err
		}
		err = w.inspection.File(ctx, p.level, p.row, file)
		return struct{}{}, errors.Join(err, file.Close())
	}, func(int, struct{}) error { return nil }, func(struct{}) {})
}

// inspect hands a file that is copied to the inspection, if there is one.
func (w *writer) inspect(ctx context.Context, p place, l *loaded) error {
	if w.inspection == nil || w.inspection.File == nil || w.levels[p.level].Rows[p.row].Padding {
		return nil
	}
	return w.inspection.File(ctx, p.level, p.row, l.open())
}

// inspected adds the columns of the inspection, which has seen all files.
func (w *writer) inspected(ctx context.Context) error {
	added, err := w.inspection.Columns(ctx)
	w.inspection = nil
	if err != nil {
		return err
	}
	return w.add(added)
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
