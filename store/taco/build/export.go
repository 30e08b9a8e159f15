package build

import (
	"context"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/taco/internal/tortilla"
	"github.com/chaski-eo/chaski/tables"
)

// Export writes samples of containers to path, as Create does: rows of level 0 in the order given, with all that lies
// below them and all columns; nil are all samples. So it copies a dataset in another form, joins several, brings a
// Tortilla or a TACO 0.2 to version 2, and cuts a subset. The options' opener must open the dataset's files.
//
// c is COLLECTION.json; see CollectionOf. Its extent is computed again if the samples have points of STAC or ISTAC. If
// all samples of a container of generation 1 are exported, its extent is only enlarged to hold their points: its
// authors may have written the extent of the images, whose centres the points are.
func Export(ctx context.Context, d *taco.Dataset, rows []int, c Collection, path string, o Options) (*Result, error) {
	w := &writer{o: o, collection: c}
	w.files = w.copyFiles
	if err := w.check(ctx, path); err != nil {
		return nil, err
	}
	defer w.defaults(path)()
	var err error
	order := rows
	upgraded := d.IDColumn() == tortilla.ColID && !w.o.Form.Older()
	if rows == nil || upgraded {
		if order, err = d.Visible(ctx, 0); err != nil {
			return nil, err
		}
	}
	if rows == nil {
		rows = order
	}
	if w.levels, err = copied(ctx, d, rows, w.o.Form); err != nil {
		return nil, err
	}
	w.collection.order = map[string][]string{}
	for _, name := range d.LevelNames() {
		table, err := d.LevelTable(ctx, name)
		if err != nil {
			return nil, err
		}
		for _, column := range table.Columns() {
			w.collection.order[name] = append(w.collection.order[name], column.Name)
		}
	}
	if d.LevelNames() != nil && !w.o.Form.Named() {
		for k, l := range w.levels {
			l.Table = l.Table.Retype(func(_ int, column tables.Column) tables.Type {
				return c.stored(k, column)
			}).Rename(oldName)
		}
	}
	if upgraded {
		for k, l := range w.levels {
			if l.Table, err = newer(ctx, l.Table); err != nil {
				return nil, fault.WithPart(err, levelName(k), fault.NoOffset)
			}
		}
	}
	if err := w.more(ctx); err != nil {
		return nil, err
	}
	given := w.collection.Extent
	w.extent = func(ctx context.Context) error {
		err := w.measure(ctx)
		if err == nil && upgraded && len(rows) == len(order) && given != nil &&
			!slices.Equal(given.Spatial, world().Spatial) {
			e := *given
			e.cover(w.collection.Extent)
			w.collection.Extent = &e
		}
		return err
	}
	return w.create(ctx, path)
}
