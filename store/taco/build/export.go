package build

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
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

// wholeLevels returns all levels of a dataset as a ZIP may have them.
func wholeLevels(ctx context.Context, d *taco.Dataset) ([]*Level, error) {
	table, err := d.Level(ctx, 0)
	if err != nil {
		return nil, err
	}
	return copied(ctx, d, model.UpTo[int](table.Len()), ZIP)
}

// copied returns the levels of rows of a dataset, and checks them.
func copied(ctx context.Context, d *taco.Dataset, rows []int, form Form) ([]*Level, error) {
	if len(rows) == 0 {
		return nil, unsupported("dataset", "has no samples")
	}
	var levels []*Level
	parents := make([]int32, len(rows))
	for depth := 0; ; depth++ {
		table, err := d.Level(ctx, depth)
		if err != nil {
			return nil, err
		}
		level, err := copiedLevel(ctx, d, table, depth, rows, parents)
		if err != nil {
			return nil, err
		}
		levels = append(levels, level)
		if depth+1 >= d.Levels() {
			break
		}
		if rows, parents, err = below(ctx, d, table, level, depth, rows); err != nil {
			return nil, err
		}
		if d.LevelNames() != nil && (form == ZIP || form == Folder) {
			if rows, parents, err = even(ctx, d, levels, rows); err != nil {
				return nil, err
			}
		}
		if len(rows) == 0 {
			break
		}
	}
	levels[len(levels)-1].first = nil
	seen := make(map[string]bool, len(rows))
	for row := range levels[0].Rows {
		if err := checkSample(levels, form, row, seen); err != nil {
			return nil, err
		}
	}
	return levels, nil
}

// copiedLevel returns rows of level k, whose table is t. A row of -1 is a placeholder.
func copiedLevel(ctx context.Context, d *taco.Dataset, t *tables.Table, k int, rows []int,
	parents []int32) (*Level, error) {
	level := &Level{}
	pads := 0 // of the parent
	for i, row := range rows {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if i == 0 || parents[i] != parents[i-1] {
			pads = 0
		}
		if row < 0 {
			level.add(k, Row{ID: model.PadPrefix + strconv.Itoa(pads), Parent: parents[i], Padding: true,
				bytes: []byte{}})
			pads++
			continue
		}
		e, err := d.EntryAt(ctx, k, row)
		if err != nil {
			return nil, err
		}
		r := Row{ID: e.ID, Parent: parents[i], Folder: e.Kind == taco.Folder, Padding: e.Padding, entry: &e}
		if e.Padding {
			r.bytes = []byte{}
		}
		level.add(k, r)
	}
	typed := t.Retype(func(i int, _ tables.Column) tables.Type { return t.Required(i) })
	users := only(typed, func(name string) bool { return !ofContainer(name, d.IDColumn()) })
	level.Table = users.Take(slices.Clone(rows))
	return level, checkColumns(level.Table, k)
}

// ofContainer reports whether a column holds places or ids of samples in their container. The new container
// computes its own.
func ofContainer(name, id string) bool {
	switch name {
	case id, "type", "path", "tortilla:offset", "tortilla:length", "tortilla:root", "__index_level_0__":
		return true
	}
	return strings.HasPrefix(name, "internal:")
}

// below returns the children of rows of level k, and for each the place of its parent among the rows.
func below(ctx context.Context, d *taco.Dataset, t *tables.Table, l *Level, k int, rows []int) (next []int,
	parents []int32, err error) {
	up, err := d.Parents(ctx, k+1)
	if err != nil {
		return nil, nil, err
	}
	first, list := model.Group(up, t.Len())
	for i, row := range rows {
		l.first = append(l.first, int32(len(next)))
		if row < 0 {
			continue
		}
		for _, c := range list[first[row]:first[row+1]] {
			next, parents = append(next, int(c)), append(parents, int32(i))
		}
	}
	l.first = append(l.first, int32(len(next)))
	return next, parents, nil
}

// even adds a row of -1 to folders of the last level for each file of a sequence that others at their place of the tree
// have more: the samples of TACO 2 have the same tree, with placeholders for what they lack.
func even(ctx context.Context, d *taco.Dataset, levels []*Level, next []int) (rows []int, parents []int32, err error) {
	depth := len(levels) - 1
	above, names := levels[depth], map[string][]string{}
	ids, err := d.IDs(ctx, depth+1)
	if err != nil {
		return nil, nil, err
	}
	for i := range above.Rows {
		place, last := placeOf(levels, depth, i), -1
		all := names[place]
		for _, row := range next[above.first[i]:above.first[i+1]] {
			id := ids.Str(row)
			if last++; last == len(all) || all[last] != id {
				if at := slices.Index(all, id); at >= 0 {
					last = at
				} else {
					all = slices.Insert(all, last, id)
				}
			}
		}
		names[place] = all
	}
	first := make([]int32, 0, len(above.first))
	for i := range above.Rows {
		first = append(first, int32(len(rows)))
		left := next[above.first[i]:above.first[i+1]]
		for _, name := range names[placeOf(levels, depth, i)] {
			row := -1
			if len(left) > 0 && ids.Str(left[0]) == name {
				row, left = left[0], left[1:]
			}
			rows, parents = append(rows, row), append(parents, int32(i))
		}
	}
	above.first = append(first, int32(len(rows)))
	return rows, parents, nil
}

// placeOf returns the path of a row below its sample.
func placeOf(levels []*Level, k, row int) string {
	place := ""
	for ; k > 0; k-- {
		place = levels[k].Rows[row].ID + "/" + place
		row = int(levels[k].Rows[row].Parent)
	}
	return place
}
