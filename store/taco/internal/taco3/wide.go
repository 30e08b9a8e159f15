package taco3

import (
	"context"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/store"
)

// wideTable makes the table with a row for each sample, as taco-eo's reader shows it.
type wideTable struct {
	c     *reader
	path  func(uri string) string
	cols  []tables.Column
	loads []func(context.Context) (*tables.Vector, error)
}

// wide implements model.Named. The columns are taco:sample_index, the columns of the level of samples, and for each
// entry of taco:structure where its file is (PATH::location; of a sequence a list, in the order of the numbers) and its
// columns of rumi (PATH::header). The table of a catalog begins with source_file.
func (c *reader) wide(ctx context.Context, first int, path func(uri string) string) (*tables.Table, error) {
	unlock, err := c.container.Lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := c.read(ctx, len(c.byDepth)-1); err != nil {
		return nil, err
	}
	w := wideTable{c: c, path: path}
	samples := c.levels[0]
	if samples.Sources != nil {
		w.add("source_file", samples.Sources.Type(), func(context.Context) (*tables.Vector, error) {
			return samples.Sources, nil
		})
	}
	number := tables.Type{Kind: tables.Uint64, Bits: 64}
	w.add("taco:sample_index", number, func(context.Context) (*tables.Vector, error) {
		return tables.NewInts(number, num.Range[int64](first, first+samples.tbl.Len()), nil), nil
	})
	for k, col := range samples.tbl.Columns() {
		if !strings.HasPrefix(col.Name, "internal:") {
			w.add(col.Name, col.Type, func(ctx context.Context) (*tables.Vector, error) {
				return samples.tbl.At(ctx, k)
			})
		}
	}
	for i := range c.coll.structure.items {
		w.item(&c.coll.structure.items[i])
	}
	return tables.New(samples.tbl.Len(), w.cols, func(ctx context.Context, i int) (*tables.Vector, error) {
		return w.loads[i](ctx)
	}), nil
}

func (w *wideTable) add(name string, t tables.Type, load func(context.Context) (*tables.Vector, error)) {
	w.cols, w.loads = append(w.cols, tables.Column{Name: name, Type: t}), append(w.loads, load)
}

// item adds the columns of an entry of the structure.
func (w *wideTable) item(it *Item) {
	level := w.c.itemLevel(it)
	w.column(level, it, "location", tables.Strings, func(context.Context) (*tables.Vector, error) {
		places := make([]string, level.tbl.Len())
		// The path of the last row is kept, because most rows lie in one object.
		uri, path := "", ""
		for row := range places {
			entry := store.Entry{ID: level.ids[row], Level: level.depth, Row: level.base + row}
			if w.c.folder(level, row) {
				continue
			}
			if err := w.c.place(level, row, &entry); err != nil {
				return nil, err
			}
			if entry.URI != uri {
				uri, path = entry.URI, w.path(entry.URI)
			}
			places[row] = entry.Subfile(path)
		}
		return tables.NewStrings(places, nil), nil
	})
	for k, col := range level.tbl.Columns() {
		field, is := strings.CutPrefix(col.Name, "rumi:")
		files := w.c.coll.metadata[level.name][col.Name].Files
		if is && (files == nil || slices.Contains(files, it.entry)) {
			w.column(level, it, field, col.Type, func(ctx context.Context) (*tables.Vector, error) {
				return level.tbl.At(ctx, k)
			})
		}
	}
}

// column adds a column with the values of an item's rows in a level.
func (w *wideTable) column(l *levelTable, it *Item, field string, t tables.Type,
	values func(context.Context) (*tables.Vector, error)) {
	name, typ := it.path+"::"+field, t
	if it.sequence() {
		typ = tables.Type{Kind: tables.List, Elem: &t}
	}
	load := func(ctx context.Context) (*tables.Vector, error) {
		vector, err := values(ctx)
		if err != nil {
			return nil, err
		}
		rows := w.c.rowsOf(l, it)
		flat, offs := make([]int, 0, len(rows)), make([]uint32, 1, len(rows)+1)
		for _, r := range rows {
			flat = append(flat, r...)
			offs = append(offs, uint32(len(flat)))
		}
		if it.sequence() {
			if vector, err = vector.Take(flat); err != nil {
				return nil, err
			}
			return tables.NewList(vector, offs, nil), nil
		}
		return single(vector, rows)
	}
	if field == "location" {
		load = w.c.once(name, typ, load)
	}
	w.add(name, typ, load)
}

// once returns what loads a column of the wide table once for all queries: the texts of places take longer to make than
// a condition to decide.
func (c *reader) once(name string, t tables.Type,
	load func(context.Context) (*tables.Vector, error)) func(context.Context) (*tables.Vector, error) {
	kept := c.locations[name]
	if kept == nil {
		kept = tables.New(c.levels[0].tbl.Len(), []tables.Column{{Name: name, Type: t}},
			func(ctx context.Context, _ int) (*tables.Vector, error) { return load(ctx) })
		if c.locations == nil {
			c.locations = map[string]*tables.Table{}
		}
		c.locations[name] = kept
	}
	return func(ctx context.Context) (*tables.Vector, error) { return kept.At(ctx, 0) }
}

// single returns the value of the one row of each sample, null for a sample without it.
func single(v *tables.Vector, rows [][]int) (*tables.Vector, error) {
	pick := make([]int, len(rows))
	for i, numbers := range rows {
		pick[i] = -1 // takes null
		if len(numbers) > 0 {
			pick[i] = numbers[0]
		}
	}
	return v.Take(pick)
}

// itemLevel returns the level that holds the files of an item.
func (c *reader) itemLevel(it *Item) *levelTable {
	return c.levels[slices.Index(c.coll.structure.Levels, levelOf(it.Folder))]
}

// rowsOf returns for each sample its rows of an item, in the order of their numbers.
func (c *reader) rowsOf(l *levelTable, it *Item) [][]int {
	rows := make([][]int, c.levels[0].tbl.Len())
	for i, name := range l.ids {
		if it.sequence() && it.Number(name) < 0 || !it.sequence() && name != it.Name {
			continue
		}
		sample, above := l.parents[i], l.above
		for above.above != nil {
			sample, above = above.parents[sample], above.above
		}
		rows[sample] = append(rows[sample], i)
	}
	if it.sequence() {
		for _, r := range rows {
			slices.SortFunc(r, func(a, b int) int { return it.Number(l.ids[a]) - it.Number(l.ids[b]) })
		}
	}
	return rows
}
