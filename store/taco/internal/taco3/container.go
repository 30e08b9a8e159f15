// Package taco3 reads TACO 3 containers, and archives of cozip's profile Flat: ZIPs whose first entry is an index of
// the others. It goes by taco-eo 0.14.2 and cozip 2026.9.27, whose files differ from the draft of the
// specification (3.0.0).
//
// A container has a table for each folder of taco:structure: "sample", "children" (the files and folders of a sample),
// "children/before". A level of the model joins the tables of one depth, since a row's children must lie in the next
// level; the tables keep their names beside.
package taco3

import (
	"context"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
)

// reader is a model.Reader of TACO 3.
type reader struct {
	container *model.Container
	coll      *collection
	index     *zipIndex // of a ZIP
	levels    []*levelTable
	byDepth   [][]*levelTable
	// locations are the columns PATH::location of the wide table, each a table of its own.
	locations map[string]*tables.Table
}

// levelTable is the table of a folder.
type levelTable struct {
	name   string // as taco:metadata has it
	folder string // below a sample; "" for its root, and for the level of samples
	depth  int
	above  *levelTable // nil for the level of samples

	tbl   *tables.Table // nil until it is read
	base  int           // the number of rows in front of it in its depth
	ids   []string      // nil at the level of samples, which has names
	names *tables.Vector
	paths *tables.Vector
	// Offsets and Sizes are nil in a FOLDER and at the level of samples, Sources elsewhere than in a catalog.
	model.Places
	parents []int32 // rows of the level above
}

// OpenZIP opens a cozip, of profile TACO or Flat.
func OpenZIP(ctx context.Context, c *model.Container) error {
	index, tail, err := readIndex(ctx, c.From.File, c.From.Head)
	if err != nil {
		return err
	}
	c.Hold(tail)
	if index.profile == profileFlat {
		return openFlat(ctx, c, index)
	}
	place, ok := index.spans[model.CollectionName]
	if !ok {
		return fault.At(fault.Corrupt, indexPart, indexAt, "does not list %s", model.CollectionName)
	}
	r := &reader{container: c, index: index}
	if err := r.open(ctx, model.Place{URI: c.URI, Span: place}); err != nil {
		return err
	}
	return r.listed()
}

// OpenDirectory opens a directory: COLLECTION.json with METADATA and DATA, or with the tables of the ZIPs in its base.
func OpenDirectory(ctx context.Context, c *model.Container) error {
	r := &reader{container: c}
	return r.open(ctx, model.Place{URI: source.Join(c.URI, model.CollectionName)})
}

// listed checks that the index lists the table of every level, and no other.
func (c *reader) listed() error {
	for _, l := range c.levels {
		if _, ok := c.index.spans[l.entry()]; !ok {
			return fault.At(fault.Corrupt, indexPart, indexAt, "does not list %s", l.entry())
		}
	}
	if n := len(c.levels) + 1; len(c.index.names) != n {
		return fault.At(fault.Corrupt, indexPart, indexAt, "lists %d entries: %s and %d tables are declared",
			len(c.index.names), model.CollectionName, n-1)
	}
	return nil
}

// open reads the COLLECTION.json at a place, and makes the levels of taco:structure.
func (c *reader) open(ctx context.Context, collection model.Place) error {
	file, extent, err := c.container.Locate(ctx, collection)
	if err == nil {
		c.coll, err = readCollection(ctx, file, extent)
	}
	if err != nil {
		return err
	}
	byName := map[string]*levelTable{}
	for _, name := range c.coll.structure.Levels {
		l := &levelTable{name: name, folder: FolderOf(name), depth: Depth(name), above: byName[Above(name)],
			Places: model.Places{Name: name, First: indexAt, Least: 1}}
		byName[name] = l
		if len(c.byDepth) == l.depth {
			c.byDepth = append(c.byDepth, nil)
		}
		c.levels, c.byDepth[l.depth] = append(c.levels, l), append(c.byDepth[l.depth], l)
	}
	c.container.Document = c.coll.raw
	c.container.Named = &model.Named{Names: slices.Clone(c.coll.structure.Levels), Rows: c.rows, Files: c.filePaths(),
		Sequence: c.sequence, Wide: c.wide}
	c.container.Open(c, len(c.byDepth))
	return nil
}

// entry returns the name of the table in a ZIP and in a FOLDER.
func (l *levelTable) entry() string { return "METADATA/" + TableName(l.name) }

// Bytes implements model.Reader.
func (c *reader) Bytes() int64 {
	size := int64(len(c.coll.raw))
	if c.index != nil {
		size += c.index.tailBytes
	}
	for _, t := range c.locations {
		size += t.Bytes()
	}
	for _, l := range c.levels[1:] {
		if l.tbl != nil {
			size += l.tbl.Bytes() + 4*int64(cap(l.parents)) + 16*int64(cap(l.ids))
		}
	}
	return size
}

// Level implements model.Reader: the table of samples, or the tables of a depth with the columns id and type.
func (c *reader) Level(ctx context.Context, depth int) (*model.Level, error) {
	if err := c.read(ctx, depth); err != nil {
		return nil, err
	}
	if depth == 0 {
		return &model.Level{Table: c.levels[0].tbl, IDs: c.levels[0].names}, nil
	}
	var tbls []*tables.Table
	var ids, types []string
	apart := c.apart(depth)
	for _, level := range c.byDepth[depth] {
		ids = append(ids, level.ids...)
		tbls = append(tbls, level.tbl.Rename(func(name string) string {
			if apart[name] {
				return LevelColumn(level.name, name)
			}
			return name
		}))
		for i := range level.ids {
			types = append(types, store.EntryType(c.folder(level, i)))
		}
	}
	stored := tbls[0]
	if len(tbls) > 1 {
		var err error
		if stored, err = tables.Concat(tbls, column.Mixed); err != nil {
			return nil, fault.WithFile(err, c.container.URI)
		}
	}
	names := tables.NewStrings(ids, nil)
	return &model.Level{IDs: names, Table: tables.Join(tables.FromVectors([]string{model.ColumnID, model.ColumnType},
		[]*tables.Vector{names, tables.NewStrings(types, nil)}), stored)}, nil
}

// LevelColumn returns the name that a column of a level has in the table of its depth, if another level of that depth
// has a column of this name with other values.
func LevelColumn(level, name string) string { return level + "/" + name }

// apart returns the columns that tables of a depth have with values of different kinds, which no column holds together.
func (c *reader) apart(depth int) map[string]bool {
	types, apart := map[string]tables.Type{}, map[string]bool{}
	for _, l := range c.byDepth[depth] {
		for _, column := range l.tbl.Columns() {
			was, known := types[column.Name]
			number := was.Kind == tables.Int64 || was.Kind == tables.Uint64 || was.Kind == tables.Float64
			switch {
			case !known || was.Kind == tables.Null:
				types[column.Name] = column.Type
			case column.Type.Kind == tables.Null:
			case was.Kind != column.Type.Kind, !number && !was.Equal(column.Type):
				apart[column.Name] = true
			}
		}
	}
	return apart
}

// folder reports whether a row of a level below the samples is a folder of the structure.
func (c *reader) folder(l *levelTable, row int) bool {
	_, is := c.coll.structure.members[strings.TrimPrefix(l.folder+"/"+l.ids[row], "/")]
	return is
}

// Parents implements model.Reader.
func (c *reader) Parents(_ context.Context, depth int) ([]int32, error) {
	var parents []int32
	for _, l := range c.byDepth[depth] {
		for _, p := range l.parents {
			parents = append(parents, int32(l.above.base)+p)
		}
	}
	return parents, nil
}

// Entry implements model.Reader.
func (c *reader) Entry(_ context.Context, depth, row int) (store.Entry, error) {
	if depth == 0 {
		e := store.Entry{ID: c.levels[0].names.Str(row), Folder: true}
		if c.levels[0].names.Null(row) {
			return e, c.inRow(c.levels[0], row, "id is null")
		}
		return e, nil
	}
	l, row := c.tableRow(depth, row)
	e := store.Entry{ID: l.ids[row], Folder: c.folder(l, row)}
	if e.Folder {
		return e, nil
	}
	err := c.place(l, row, &e)
	return e, err
}

// tableRow returns the table of a row of a depth, and the row there.
func (c *reader) tableRow(depth, row int) (l *levelTable, rowThere int) {
	in := func(l *levelTable) bool { return row >= l.base && row < l.base+l.tbl.Len() }
	l = c.byDepth[depth][slices.IndexFunc(c.byDepth[depth], in)]
	return l, row - l.base
}

// place sets where the bytes of a file are.
func (c *reader) place(l *levelTable, i int, e *store.Entry) error {
	if c.container.Form == model.CozipFolder {
		// The path becomes one of the file system, so a hostile table must not lead out of the directory.
		p := l.paths.Str(i)
		if model.Climbs(p) {
			return c.inRow(l, i, "%s %q is not a path below DATA", model.ColumnRelative, p)
		}
		e.URI, e.Offset, e.Size = source.Join(c.container.URI, "DATA/"+p), store.Whole, store.Whole
		return nil
	}
	return c.container.Place(&l.Places, i, e)
}

// inRow returns an error for a value in a row.
func (c *reader) inRow(l *levelTable, row int, format string, args ...any) error {
	return c.container.InTable(l.name, row, format, args...)
}
