package build

import (
	"cmp"
	"context"
	"errors"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/inorder"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/store/taco/internal/taco2"
)

// containerWriter writes one container.
type containerWriter struct {
	o          Options
	collection Collection
	levels     []*Level
	result     Result
	// inspection gets each file while it is copied, or is nil.
	inspection *Inspection
	// extent, if it is not nil, sets the extent of the description once all columns are complete.
	extent func(ctx context.Context) error
	named  *named // of a form of TACO 3, once its structure is known
}

// newWriter returns what writes a container to path, in the form of the options or, for Auto, of the path's name.
func newWriter(path string, c Collection, o Options) *containerWriter {
	if o.Form == Auto {
		o.Form = FormOf(path)
	}
	return &containerWriter{o: o, collection: c}
}

// putter writes the bytes of a file.
type putter func(p levelRow, l *loaded) error

// levelRow is a row of a level.
type levelRow struct {
	level, row int
	path       string
}

// order returns the files in the order in which they are written.
func (w *containerWriter) order() []levelRow {
	if w.named != nil {
		w.result.Samples = len(w.named.levels[0].rows)
		return w.named.order(w)
	}
	var places []levelRow
	// The files of a sample of level 0 follow each other, so reading a sample is one request.
	for i := range w.levels[0].Rows {
		places = w.leaves(places, levelRow{0, i, w.levels[0].Rows[i].ID})
		if !w.levels[0].Rows[i].Padding {
			w.result.Samples++
		}
	}
	return places
}

// leaves appends the files of a row.
func (w *containerWriter) leaves(all []levelRow, p levelRow) []levelRow {
	level := w.levels[p.level]
	if !level.Rows[p.row].Folder {
		return append(all, p)
	}
	for c := level.first[p.row]; c < level.first[p.row+1]; c++ {
		all = w.leaves(all, levelRow{p.level + 1, int(c), p.path + "/" + w.levels[p.level+1].Rows[c].ID})
	}
	return all
}

// copyFiles loads the files in order and hands each to the inspection, and to put. Afterwards levels and collection are
// complete.
func (w *containerWriter) copyFiles(ctx context.Context, put putter) error {
	files := w.order()
	err := inorder.Do(ctx, len(files), w.o.Workers,
		func(ctx context.Context, i int) (*loaded, error) {
			content, err := load(ctx, w.o.Opener, w.row(files[i]))
			if err != nil {
				return nil, err
			}
			if err = w.inspect(ctx, files[i], content.open()); err != nil {
				return nil, errors.Join(err, content.close())
			}
			return content, nil
		},
		func(i int, content *loaded) error {
			err := w.hand(files[i], content, put)
			if err == nil && w.o.Progress != nil {
				w.o.Progress(i+1, len(files))
			}
			return err
		},
		func(content *loaded) { _ = content.close() })
	if err == nil && w.inspection != nil {
		err = w.complete(ctx)
	}
	return err
}

// row returns the row at a place.
func (w *containerWriter) row(p levelRow) *Row { return &w.levels[p.level].Rows[p.row] }

// hand gives a file to put, closes it, and counts it.
func (w *containerWriter) hand(p levelRow, l *loaded, put putter) error {
	err := put(p, l)
	if cerr := l.close(); err == nil {
		err = cerr
	}
	w.result.Files++
	w.result.Bytes += l.size
	return err
}

// complete adds the columns of the inspection, which has seen all files, and columns that are computed from others.
func (w *containerWriter) complete(ctx context.Context) error {
	if w.inspection != nil {
		if err := w.inspected(ctx); err != nil {
			return err
		}
	}
	if w.extent != nil {
		if err := w.extent(ctx); err != nil {
			return err
		}
	}
	return w.typed(ctx)
}

// Names in a container.
const (
	dataFolder = "DATA/"
	// metadataFolder has the tables of levels.
	metadataFolder = "METADATA/"
	metaSuffix     = "/" + taco2.MetaName
)

// typed gives the columns the types that the description declares.
func (w *containerWriter) typed(ctx context.Context) error {
	levels := make([]*tables.Table, len(w.levels))
	for k, l := range w.levels {
		levels[k] = l.Table
	}
	if err := typed(ctx, w.collection.Columns, levels); err != nil {
		return err
	}
	for k, l := range w.levels {
		l.Table = levels[k]
	}
	return nil
}

// measure replaces the extent of the description by the extent of the samples, if they have positions or times.
func (w *containerWriter) measure(ctx context.Context) error {
	extent, err := extentOf(ctx, w.levels)
	if err != nil || extent == nil {
		return err
	}
	if extent.Temporal == nil && w.collection.Extent != nil {
		extent.Temporal = w.collection.Extent.Temporal
	}
	w.collection.Extent = extent
	return nil
}

// inspect hands a file to the inspection, if there is one. An error names the sample by the ids of its path.
func (w *containerWriter) inspect(ctx context.Context, p levelRow, r source.Reader) error {
	if w.inspection == nil || w.inspection.File == nil || w.row(p).Padding {
		return nil
	}
	err := w.inspection.File(ctx, p.level, p.row, r)
	return fault.WithPart(err, "sample "+strconv.Quote(path(w.levels, p.level, p.row)), fault.NoOffset)
}

// inspected adds the columns of the inspection, which has seen all files.
func (w *containerWriter) inspected(ctx context.Context) error {
	added, err := w.inspection.Columns(ctx)
	w.inspection = nil
	if err != nil {
		return err
	}
	return w.add(added)
}

// add adds columns to the levels.
func (w *containerWriter) add(added []*tables.Table) error {
	for depth, table := range added {
		if table == nil {
			continue
		}
		level := w.levels[depth]
		if table.Len() != len(level.Rows) {
			return unsupported(model.LevelName(depth), "%d rows of columns for %d samples", table.Len(),
				len(level.Rows))
		}
		if err := checkColumns(table, depth); err != nil {
			return err
		}
		level.Table = replaced(level.Table, table)
	}
	return nil
}

// addFrom adds the columns that more returns, if it is not nil.
func (w *containerWriter) addFrom(ctx context.Context, more More) error {
	if more == nil {
		return nil
	}
	added, err := more(ctx, copies(w.levels))
	if err != nil {
		return err
	}
	return w.add(added)
}

// located sets the extent of the description, if it has none: to the extent of the samples, or to another one if these
// have no positions.
func (w *containerWriter) located(ctx context.Context, otherwise *Extent) error {
	if w.collection.Extent != nil {
		return nil
	}
	extent, err := extentOf(ctx, w.levels)
	w.collection.Extent = cmp.Or(extent, otherwise)
	return err
}

// more adds the columns of the options to the levels. The columns of Options.Inspect are left to complete, because
// files are inspected while they are copied.
func (w *containerWriter) more(ctx context.Context) error {
	if err := w.addFrom(ctx, w.o.More); err != nil || w.o.Inspect == nil {
		return err
	}
	in := w.o.Inspect(copies(w.levels))
	w.inspection = &in
	return nil
}

// copies returns levels for Options.More and Options.Inspect, which may change the tables.
func copies(levels []*Level) []Level {
	out := make([]Level, len(levels))
	for k, l := range levels {
		out[k] = *l
	}
	return out
}
