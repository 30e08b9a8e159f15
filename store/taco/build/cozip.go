package build

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/store/taco/internal/taco3"
)

// cozip writes the container as an archive of TACO 3: an index, the files, padding if the archive is small, and the
// block that the index lists: COLLECTION.json and the tables. The index, and the checksum of it and of the end of the
// archive, are set last.
func (w *containerWriter) cozip(ctx context.Context, f archiveFile) error {
	if err := w.name(ctx); err != nil {
		return err
	}
	archive := newArchive(f)
	archive.utf8 = true
	names := []string{model.CollectionName}
	for _, l := range w.named.levels {
		names = append(names, metadataFolder+taco3.TableName(l.Name))
	}
	// Without places so far, because only the length of the index is known: it depends on the names alone.
	index := taco3.AppendIndex(nil, names, make([]span, len(names)))
	head, err := archive.reserve(taco3.IndexName, index, taco3.IndexExtra(0))
	if err != nil {
		return err
	}
	block, err := w.taco3(ctx, archive)
	if err == nil {
		err = archive.pad(ctx, block)
	}
	if err != nil {
		return err
	}
	places, err := putAll(ctx, archive, "", block)
	if err != nil {
		return err
	}
	index = taco3.AppendIndex(nil, names, places)
	if err := archive.seal(head, index); err != nil {
		return err
	}
	sum := taco3.Checksum(index, archive.file.last(), archive.at())
	archive.patch(taco3.ChecksumAt, append(binary.LittleEndian.AppendUint64(nil, sum), index...))
	return archive.finish()
}

// taco3 writes the files, and returns COLLECTION.json and the tables, in the order of the index.
func (w *containerWriter) taco3(ctx context.Context, t sink) ([]entry, error) {
	err := w.name(ctx)
	if err == nil {
		err = w.data(ctx, t)
	}
	if err != nil {
		return nil, err
	}
	return w.block(ctx)
}

// name finds the structure, once.
func (w *containerWriter) name(ctx context.Context) (err error) {
	if w.named == nil {
		w.named, err = w.nameLevels(ctx, w.collection.structure)
	}
	return err
}

// block returns COLLECTION.json and the tables, in the order of the index.
func (w *containerWriter) block(ctx context.Context) ([]entry, error) {
	out := []entry{{name: model.CollectionName}}
	metadata := make([]jsonMember, len(w.named.levels))
	for i, level := range w.named.levels {
		columns, err := w.columnsOf(ctx, level)
		if err != nil {
			return nil, fault.WithPart(err, level.Name, fault.NoOffset)
		}
		metadata[i] = jsonMember{level.Name, w.declaredColumns(level.Name, columns.Columns())}
		data, err := encodedNamed(ctx, level.Name, tables.Join(w.stored(level), columns))
		if err != nil {
			return nil, fault.WithPart(err, level.Name, fault.NoOffset)
		}
		out = append(out, entry{metadataFolder + taco3.TableName(level.Name), data})
	}
	err := w.located(ctx, nil)
	if err == nil {
		out[0].data, err = w.collection.named(jsonMember{"taco:structure", w.named.paths},
			jsonMember{"taco:metadata", object(metadata)})
	}
	return out, err
}

// columnsOf returns the columns of a level that are not about its place in the container.
func (w *containerWriter) columnsOf(ctx context.Context, l *namedLevel) (*tables.Table, error) {
	depth, table := l.depth, w.levels[l.depth].Table
	// A sample and its file have one row of level 0, so the columns are divided between them.
	if w.named.file != "" {
		files := l != w.named.levels[0]
		table = only(table, func(name string) bool { return ofFile(name) == files })
	}
	// What the source calls a column if other levels have the name.
	tbl := table.Take(num.As[int](l.rows)).Rename(func(name string) string {
		return strings.TrimPrefix(name, taco3.LevelColumn(l.Name, ""))
	})
	shared := 0
	for _, other := range w.named.levels {
		if other.depth == l.depth && w.named.file == "" {
			shared++
		}
	}
	// The columns of the other tables of the depth are empty in these rows, and must not be declared.
	if shared > 1 {
		var keep []int
		for i := range tbl.Columns() {
			values, err := tbl.At(ctx, i)
			if err != nil {
				return nil, err
			}
			_, declared := w.collection.declared[l.Name][tbl.Columns()[i].Name]
			if declared || someValue(values) {
				keep = append(keep, i)
			}
		}
		order := w.collection.order[l.Name] // columns of all tables stand in the order of the first table
		slices.SortStableFunc(keep, func(a, b int) int {
			cols := tbl.Columns()
			return cmp.Compare(uint(slices.Index(order, cols[a].Name)), uint(slices.Index(order, cols[b].Name)))
		})
		tbl = tbl.Select(keep)
	}
	return modern(ctx, tbl, func(name string, typ tables.Type) tables.Type {
		if d, ok := w.collection.declared[l.Name][name]; ok {
			return d.Form(typ)
		}
		return typ.With(func(f *tables.Form) { f.Note = cmp.Or(w.collection.descriptionOf(depth, name), f.Note) })
	})
}

// ofFile reports whether a column is about a file, and not about the sample.
func ofFile(name string) bool {
	space, _, _ := strings.Cut(name, ":")
	return name == "taco:header" || slices.Contains([]string{"rumi", "chaski", "geotiff", "stats", "scaling"}, space)
}

// Types of the columns of the container itself.
var (
	idForm   = &tables.Form{Required: true}
	rowID    = tables.Type{Kind: tables.Uint64, Bits: 64, Form: idForm}
	position = tables.Type{Kind: tables.Uint64, Bits: 64}
	nameType = tables.Type{Kind: tables.String, Form: idForm}
)

// stored returns the columns of the container itself.
func (w *containerWriter) stored(l *namedLevel) *tables.Table {
	columns := &Columns{}
	rows, level, samples := len(l.rows), w.levels[l.depth], l == w.named.levels[0]
	columns.addAs(model.ColumnCurrent, rowID, integers(position, rows, func(i int) int64 { return int64(i) }))
	if !samples {
		parent := func(i int) int64 { return int64(l.parents[i]) }
		columns.addAs(model.ColumnParent, rowID, integers(position, rows, parent))
	}
	columns.addAs(model.ColumnRelative, nameType, Texts(rows, func(i int) string { return w.named.path(w, l, i) }))
	switch {
	case samples:
		noted := nameType.With(func(f *tables.Form) { f.Note = "Id of the sample" })
		columns.addAs(model.ColumnID, noted, Texts(rows, func(i int) string { return level.Rows[l.rows[i]].ID }))
	case level.spans != nil:
		nulls := make([]bool, rows)
		for i, row := range l.rows {
			nulls[i] = level.Rows[row].Folder
		}
		numbers := func(value func(s span) int64) *tables.Vector {
			values := integers(position, rows, func(i int) int64 { return value(level.spans[l.rows[i]]) })
			return tables.NewInts(position, values.Ints(), nulls)
		}
		columns.addAs(model.ColumnOffset, position, numbers(func(s span) int64 { return s.Off }))
		columns.addAs(model.ColumnSize, position, numbers(func(s span) int64 { return s.Size }))
	}
	return columns.Table(rows)
}

// declaredColumns returns what taco:metadata says of the columns of a level.
func (w *containerWriter) declaredColumns(level string, cols []tables.Column) object {
	out := object{}
	for _, c := range cols {
		f := c.Type.Stored()
		declared := object{{"type", taco3.DeclaredType(c.Type)}, {"nullable", !f.Required}, {"description", f.Note}}
		files := w.collection.declared[level][c.Name].Files
		kept := func(file string) bool { return slices.Contains(w.named.paths, file) }
		if files != nil && !slices.ContainsFunc(files, func(file string) bool { return !kept(file) }) {
			declared = append(declared, jsonMember{"files", files})
		}
		out = append(out, jsonMember{c.Name, declared})
	}
	return out
}
