package build

import (
	"context"
	"errors"
	"slices"

	"github.com/chaski-eo/chaski/internal/inorder"
)

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
	for row := range w.levels[0].Rows {
		files = w.leaves(files, place{0, row, ""})
	}
	files = slices.DeleteFunc(files, func(p place) bool { return w.levels[p.level].Rows[p.row].Padding })
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

// shown returns levels for Options.More and Options.Inspect, which may change the tables.
func shown(levels []*Level) []Level {
	out := make([]Level, len(levels))
	for k, l := range levels {
		out[k] = *l
	}
	return out
}
