package build

import (
	"context"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
)

// Export writes samples of containers to path, as Create does: rows of level 0 in the order given, with all that lies
// below them and all columns; nil are all samples. So it copies a ZIP as a folder and a folder as a ZIP, joins several,
// and cuts a subset. The options' opener must open the dataset's files. A container of one version of TACO is not
// written in another, which is fault.Unsupported.
//
// c is COLLECTION.json; see CollectionOf. Its extent is computed again if the samples have points of STAC or ISTAC.
func Export(ctx context.Context, d *taco.Dataset, rows []int, c Collection, path string, o Options) (*Result, error) {
	w := newWriter(path, c, o)
	if err := sameVersion(d, w.o.Form); err != nil {
		return nil, err
	}
	if err := w.check(path); err != nil {
		return nil, err
	}
	defer w.defaults()()
	var err error
	if rows == nil {
		if rows, err = d.Visible(ctx, 0); err != nil {
			return nil, err
		}
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
	if err := w.more(ctx); err != nil {
		return nil, err
	}
	w.extent = w.measure
	return w.create(ctx, path)
}

// sameVersion returns an error if a dataset is of another version of TACO than a form.
func sameVersion(d *taco.Dataset, to Form) error {
	form := d.Form()
	switch isThird := d.LevelNames() != nil; {
	case to.Named() && !isThird:
		return unsupported("dataset", "is a %s: only one of TACO 3 is copied as TACO 3", form)
	case !to.Named() && (isThird || !slices.Contains(second, form)):
		return unsupported("dataset", "is a %s: only one of TACO 2 is copied as TACO 2", form)
	}
	return nil
}

// second are the forms of TACO 2.
var second = []Form{ZIP, Folder, Tacocat, TacocatFile, Tacollection}

// wholeLevels returns all levels of a dataset as a ZIP may have them.
func wholeLevels(ctx context.Context, d *taco.Dataset) ([]*Level, error) {
	table, err := d.Level(ctx, 0)
	if err != nil {
		return nil, err
	}
	return copied(ctx, d, num.Range[int](0, table.Len()), ZIP)
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

// copiedLevel returns rows of level k, whose table is t.
func copiedLevel(ctx context.Context, d *taco.Dataset, t *tables.Table, k int, rows []int,
	parents []int32) (*Level, error) {
	level := &Level{}
	for i, row := range rows {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		e, err := d.EntryAt(ctx, k, row)
		if err != nil {
			return nil, err
		}
		r := Row{ID: e.ID, Parent: parents[i], Folder: e.Folder, Padding: e.Padding, entry: &e}
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
		for _, c := range list[first[row]:first[row+1]] {
			next, parents = append(next, int(c)), append(parents, int32(i))
		}
	}
	l.first = append(l.first, int32(len(next)))
	return next, parents, nil
}
