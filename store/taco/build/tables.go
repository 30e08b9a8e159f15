package build

import (
	"bytes"
	"context"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/encode"
	"github.com/chaski-eo/chaski/internal/inorder"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
)

// settle loads the columns of all levels, so the tables of folders take their rows from memory.
func (w *containerWriter) settle(ctx context.Context) error {
	for _, level := range w.levels {
		for i := range level.Table.Columns() {
			if _, err := level.Table.At(ctx, i); err != nil {
				return err
			}
		}
		n, kind := len(level.Rows), func(row int) string { return store.EntryType(level.Rows[row].Folder) }
		ids := new(Columns).Add(model.ColumnID, Texts(n, level.id)).Add(model.ColumnType, Texts(n, kind))
		level.Table = tables.Join(ids.Table(n), level.Table)
	}
	return nil
}

// places returns the columns with the place of each row's bytes in a ZIP, or an empty table for other containers.
func (l *Level) places() *tables.Table {
	n := len(l.spans)
	c := &Columns{}
	c.Add(model.ColumnOffset, integers(tables.Ints, n, func(row int) int64 { return l.spans[row].Off }))
	return c.Add(model.ColumnSize, integers(tables.Ints, n, func(row int) int64 { return l.spans[row].Size })).Table(n)
}

// consolidated returns the table of METADATA of a level.
func (w *containerWriter) consolidated(k int) *tables.Table {
	level := w.levels[k]
	n, numbers := len(level.Rows), &Columns{}
	numbers.Add(model.ColumnCurrent, integers(tables.Ints, n, func(row int) int64 { return int64(row) }))
	parent := func(row int) int64 { return int64(level.Rows[row].Parent) }
	numbers.Add(model.ColumnParent, integers(tables.Ints, n, parent))
	table := tables.Join(level.Table, numbers.Table(n))
	if level.spans != nil {
		table = tables.Join(table, level.places())
	}
	if k == 0 {
		return table
	}
	paths := new(Columns).Add(model.ColumnRelative, Texts(n, func(row int) string {
		if level.Rows[row].Folder {
			return path(w.levels, k, row) + "/"
		}
		return path(w.levels, k, row)
	}))
	return tables.Join(table, paths.Table(n))
}

// metaTables encodes the tables __meta__ of the folders of level k, and calls put with each in the order of their rows.
func (w *containerWriter) metaTables(ctx context.Context, k int, put func(row int, b []byte) error) error {
	level, below := w.levels[k], w.levels[k+1]
	joined := below.Table
	if below.spans != nil {
		joined = tables.Join(joined, below.places())
	}
	// One schema for all: units of time must not depend on the rows of a folder (PIT-2).
	enc, err := encode.NewWriter(encode.Fitted(ctx, joined), nil)
	if err != nil {
		return err
	}
	var rows []int
	for row := range level.Rows {
		if level.Rows[row].Folder {
			rows = append(rows, row)
		}
	}
	return inorder.Do(ctx, len(rows), w.o.Workers,
		func(ctx context.Context, i int) ([]byte, error) {
			var mine []int
			for c := level.first[rows[i]]; c < level.first[rows[i]+1]; c++ {
				mine = append(mine, int(c))
			}
			var b bytes.Buffer
			err := enc.Write(ctx, &b, joined.Take(mine))
			return b.Bytes(), err
		},
		func(i int, b []byte) error { return put(rows[i], b) },
		func([]byte) {})
}

// encoded returns a table as Parquet. byContent ends pages where their content says so.
func encoded(ctx context.Context, t *tables.Table, byContent bool) ([]byte, error) {
	var b bytes.Buffer
	write := encode.Table
	if byContent {
		write = encode.ByContent
	}
	err := write(ctx, &b, t)
	return b.Bytes(), err
}

// metadata writes the tables and COLLECTION.json: see taco2.
func (w *containerWriter) metadata(ctx context.Context, t sink) (places []span, err error) {
	// From the deepest level up, because the table of a folder has the places of the tables below it.
	for k := len(w.levels) - 2; k >= 0; k-- {
		spans := w.levels[k].spans
		err := w.metaTables(ctx, k, func(row int, data []byte) error {
			place, err := t.put(ctx, dataFolder+path(w.levels, k, row)+metaSuffix, inMemory(data))
			if spans != nil {
				spans[row] = place
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	var entries []entry
	for k, level := range w.levels {
		// Pages end where their content says so, so a store which keeps equal pieces of files once gets the pages
		// that an edit changes.
		data, err := encoded(ctx, w.consolidated(k), level.spans == nil)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{metadataFolder + model.LevelName(k) + ".parquet", data})
	}
	doc, err := w.document(ctx)
	if err != nil {
		return nil, err
	}
	return putAll(ctx, t, "", append(entries, entry{model.CollectionName, doc}))
}

// document returns COLLECTION.json.
func (w *containerWriter) document(ctx context.Context) ([]byte, error) {
	if err := w.located(ctx, world()); err != nil {
		return nil, err
	}
	levels := make([]*tables.Table, len(w.levels))
	for k := range w.levels {
		levels[k] = w.consolidated(k)
	}
	return w.collection.document(w.collection.ofTables(pit(w.levels), levels)...)
}

// ofTables returns the members about the tree and the columns of the tables of METADATA.
func (c *Collection) ofTables(tree *model.Tree, levels []*tables.Table) []jsonMember {
	fields := make([]jsonMember, len(levels))
	for k, table := range levels {
		fields[k] = jsonMember{model.LevelName(k), fieldsOf(c, k, table)}
	}
	return []jsonMember{{pitMember, tree}, {fieldsMember, object(fields)}}
}

// fieldsOf returns the columns of a table of METADATA as taco:field_schema has them: name, type and description.
func fieldsOf(c *Collection, k int, t *tables.Table) [][3]string {
	var out [][3]string
	for _, column := range t.Columns() {
		// The original writers leave the places of bytes out, because a FOLDER has none.
		if column.Name == model.ColumnOffset || column.Name == model.ColumnSize {
			continue
		}
		out = append(out, [3]string{column.Name, column.Type.ArrowName(), c.descriptionOf(k, column.Name)})
	}
	return out
}
