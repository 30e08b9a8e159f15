package taco2

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/zipdir"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/store/taco/internal/rules"
)

// Verify implements model.Reader. It checks ids, types, parents and relative paths of every row; that all samples of
// level 0 have the same tree (PIT-1); that the tables of children agree with the consolidated tables, and have one
// schema for each level (PIT-2); and that the bytes of every sample exist, in a ZIP under its own name and with the
// CRC-32 of its entry. It notes contradictions that do not matter for reading: counts of taco:pit_schema, violations of
// the specification in COLLECTION.json, and misplaced offsets of METADATA; and lists missing source files of a catalog.
func (c *reader) Verify(ctx context.Context, r *model.Report) error {
	for k := range c.places {
		if err := c.verifyLevel(ctx, k); err != nil {
			return err
		}
	}
	if err := c.verifyTrees(ctx); err != nil {
		return err
	}
	c.compareTree(r)
	c.verifyCollection(r)
	v := &verifier{c: c, r: r, schemas: make([]map[string]tables.Type, len(c.places)+1)}
	if err := v.readDirectory(ctx); err != nil {
		return err
	}
	if err := v.tables(ctx); err != nil {
		return err
	}
	if err := c.container.EachObject(ctx, r, v.sample); err != nil {
		return err
	}
	if v.unlisted > 0 {
		r.Note("%d samples are missing from the ZIP's directory, or are elsewhere by it; other programs "+
			"cannot find them", v.unlisted)
	}
	if v.uneven > 0 {
		r.Note("%d folders' tables have no column for what is empty in the folder", v.uneven)
	}
	if v.misplaced > 0 {
		r.Note("%d rows of METADATA below level 0 have the offset or size of another sample; read by the "+
			"ZIP's directory", v.misplaced)
	}
	return nil
}

// verifyLevel checks the ids of a level and its relative paths, which have the ids from level 0 down.
func (c *reader) verifyLevel(ctx context.Context, k int) error {
	level := c.levels[k]
	relative := tables.NewNulls(tables.Type{}, level.Table.Len())
	if level.Table.Index(model.ColumnRelative) >= 0 {
		want := model.Want{To: &relative, Name: model.ColumnRelative, Kind: tables.String}
		if err := model.Columns(ctx, level.Table, want); err != nil {
			return c.inLevel(err, k)
		}
	}
	for i := range level.Table.Len() {
		if what := BadID(level.IDs.Str(i)); what != "" {
			return c.container.InRow(k, i, "id %q %s", level.IDs.Str(i), what)
		}
		if relative.Null(i) {
			continue
		}
		path, err := c.path(ctx, k, i)
		switch text := relative.Str(i); {
		case model.Climbs(text):
			return c.container.InRow(k, i, "%s %q is not a path below DATA", model.ColumnRelative, text)
		case err != nil:
			return err
		case strings.TrimSuffix(text, "/") != path:
			return c.container.InRow(k, i, "%s is %q, its ids are %q", model.ColumnRelative, text, path)
		}
	}
	return ctx.Err()
}

// node tells of a row of a level that was linked.
func (c *reader) node(k, row int) (id string, folder bool, below []int32) {
	level := c.levels[k]
	if k+1 < len(c.levels) {
		below = c.levels[k+1].Below(row)
	}
	return level.IDs.Str(row), string(level.types.Bytes(row)) == store.EntryType(true), below
}

// verifyTrees checks that the samples of level 0 have the same tree. Placeholders match anything.
func (c *reader) verifyTrees(ctx context.Context) error {
	ids, node := c.levels[0].IDs, model.Node(c.node)
	first := node.Sample(ids.Len())
	for row := range ids.Len() {
		if model.IsPadding(ids.Str(row)) {
			continue
		}
		if what := node.Apart(0, first, row); what != "" {
			return c.container.InRow(0, row, "its tree is not that of row %d (PIT-1): %s", first, what)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// compareTree notes where taco:pit_schema disagrees with the tables: their numbers of rows, and the tree of the
// samples.
func (c *reader) compareTree(r *model.Report) {
	declared := c.coll.Tree
	if declared == nil {
		r.Note("COLLECTION.json has no taco:pit_schema")
		return
	}
	rows := make([]int, len(c.levels))
	for depth, level := range c.levels {
		rows[depth] = level.Table.Len()
	}
	tree := model.Node(c.node).Tree(rows)
	if declared.Root.N != tree.Root.N || rows[0] > 0 && declared.Root.Type != tree.Root.Type {
		r.Note("taco:pit_schema says %d samples of type %s at level 0, there are %d of type %s", declared.Root.N,
			declared.Root.Type, tree.Root.N, tree.Root.Type)
	}
	if n := declared.Levels(); n != len(rows) {
		r.Note("taco:pit_schema says %d levels, there are %d", n, len(rows))
	}
	for depth := 1; depth < len(rows); depth++ {
		folders, n := declared.Hierarchy[strconv.Itoa(depth)], int64(0)
		for _, folder := range folders {
			n += folder.N
		}
		if n != int64(rows[depth]) {
			r.Note("taco:pit_schema says %d samples at level %d, there are %d", n, depth, rows[depth])
		}
		if declared := tree.Hierarchy[strconv.Itoa(depth)]; len(declared) > 0 && !model.SameFolders(folders, declared) {
			r.Note("taco:pit_schema has %s at level %d, the first sample has %s", rules.Shown(folders), depth,
				rules.Shown(declared))
		}
	}
}

// verifier checks the samples of a container.
type verifier struct {
	c *reader
	r *model.Report
	// directory is the central directory of a ZIP, or nil if it cannot be read. unlisted counts the samples without
	// an entry at their place.
	directory map[string]zipdir.Entry
	unlisted  int64
	// schemas has the types of the columns in the tables of children, by level. uneven counts the
	// tables that lack a column of their level.
	schemas []map[string]tables.Type
	uneven  int64
	// misplaced counts the rows whose offset in METADATA belongs to another sample.
	misplaced int64
}

// readDirectory reads the directory of a ZIP. The container can be read without it.
func (v *verifier) readDirectory(ctx context.Context) error {
	if v.c.container.Form != model.ZIP {
		return nil
	}
	file, err := v.c.container.File(ctx, v.c.container.URI)
	if err != nil {
		return err
	}
	v.directory, err = zipdir.Read(ctx, file, v.c.collAt.End(), isVerified)
	if fault.KindOf(err) == fault.Corrupt {
		v.r.Note("the ZIP's directory cannot be read (%v); other programs cannot open the file", err)
		v.directory, err = nil, nil
	}
	return fault.WithFile(err, v.c.container.URI)
}

// isVerified selects the entries whose bytes are checked.
func isVerified(name []byte) bool {
	return isData(name) || bytes.HasPrefix(name, []byte("METADATA/")) || string(name) == "COLLECTION.json"
}

// sample checks one sample, whose bytes r has.
func (v *verifier) sample(ctx context.Context, e store.Entry, r source.Reader) error {
	place := span{Off: 0, Size: r.Size()}
	if e.Offset != store.Whole {
		place = span{Off: e.Offset, Size: e.Size}
		if !place.In(0, r.Size()) {
			return v.c.container.InRow(e.Level, e.Row, "%d bytes at %d, the file %s has %d bytes", place.Size,
				place.Off, e.URI, r.Size())
		}
		if err := v.header(ctx, e, r, place); err != nil {
			return err
		}
	}
	if e.Folder {
		return v.children(ctx, e, r, place)
	}
	v.r.Files++
	v.r.Bytes += place.Size
	return nil
}

// header checks that the bytes of a sample lie in the ZIP entry with its name.
func (v *verifier) header(ctx context.Context, e store.Entry, r source.Reader, s span) error {
	path, err := v.c.path(ctx, e.Level, e.Row)
	l := v.c.levels[e.Level]
	if l.Spans != nil && (l.Offsets.Int(e.Row) != s.Off || l.Sizes.Int(e.Row) != s.Size) {
		v.misplaced++
	}
	if err != nil {
		return err
	}
	name := "DATA/" + path
	if e.Folder {
		name += "/" + MetaName
	}
	listed := uint32(0)
	if v.directory != nil {
		z, ok := v.directory[name]
		if listed = z.CRC; !ok || !z.Plain || z.Size != s.Size || z.Local >= s.Off {
			v.unlisted++
		}
	}
	crc, err := zipdir.LocalHeader(ctx, r, name, zipdir.Span(s))
	if err == nil {
		err = zipdir.CheckSum(ctx, r, "sample "+name, zipdir.Span(s), crc, listed)
	}
	return fault.WithFile(err, e.URI)
}

// tables checks the bytes of the tables and of COLLECTION.json in a ZIP against its directory.
// Those that were appended later have no entry.
func (v *verifier) tables(ctx context.Context) error {
	c := v.c
	if v.directory == nil {
		return nil
	}
	file, err := c.container.File(ctx, c.container.URI)
	if err != nil {
		return err
	}
	spans := map[string]span{model.CollectionName: c.collAt}
	for k, p := range c.places {
		spans["METADATA/"+model.LevelName(k)+".parquet"] = p.Span
	}
	for _, name := range slices.Sorted(maps.Keys(spans)) {
		listed, ok := v.directory[name]
		if !ok || listed.Size != spans[name].Size {
			continue
		}
		data, err := zipdir.Data(ctx, file, name, listed)
		if err == nil && span(data) == spans[name] {
			err = zipdir.CheckSum(ctx, file, name, data, listed.CRC)
		} else if fault.KindOf(err) == fault.Corrupt { // the table at this place is another one
			err = nil
		}
		if err != nil {
			return fault.WithFile(err, c.container.URI)
		}
	}
	return nil
}

// children compares the table of a folder with the rows of the next level.
func (v *verifier) children(ctx context.Context, e store.Entry, r source.Reader, s span) error {
	c := v.c
	var rows []int32
	if e.Level+1 < len(c.levels) {
		rows = c.levels[e.Level+1].Below(e.Row)
	}
	table, err := model.ReadTable(ctx, r, s, 0)
	if err == nil && table.Len() != len(rows) {
		err = fault.New(fault.Corrupt, "rows", "it has %d rows, but METADATA has %d children", table.Len(), len(rows))
	}
	if err == nil {
		err = table.Check(ctx)
	}
	if err == nil {
		err = v.schema(ctx, table, e.Level+1, rows)
	}
	if err == nil {
		err = v.compare(ctx, table, e.Level+1, rows)
	}
	return fault.WithFile(fault.WithPart(err, model.RowName(e.Level, e.Row)+" "+MetaName, 0), e.URI)
}

// schema checks that a table of children has the columns of the other tables of its level, with
// their types (PIT-2). A column without values may have lost its type.
func (v *verifier) schema(ctx context.Context, t *tables.Table, k int, rows []int32) error {
	types := v.schemas[k]
	if types == nil {
		types = map[string]tables.Type{}
		v.schemas[k] = types
	}
	for _, col := range t.Columns() {
		seen, ok := types[col.Name]
		switch {
		case !ok || seen.Kind == tables.Null:
			types[col.Name] = col.Type
		case col.Type.Kind != tables.Null && !col.Type.Equal(seen):
			return fault.New(fault.Corrupt, "column "+col.Name,
				"has type %v, but %v in another folder of the level (PIT-2)", col.Type, seen)
		}
	}
	if k == len(v.c.levels) {
		return v.c.container.NoRow(k, -1)
	}
	table := v.c.levels[k].Table
	uneven := false
	for i, col := range table.Columns() {
		if strings.HasPrefix(col.Name, "internal:") || col.Name == "path" || t.Index(col.Name) >= 0 {
			continue
		}
		values, err := table.At(ctx, i)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if hasValue(values, int(row)) {
				return fault.New(fault.Corrupt, "schema",
					"column %q is missing, but has values in METADATA (PIT-2)", col.Name)
			}
		}
		// Counted and no fault, because writers before tacotoolbox 0.17 leave out columns without a value in the
		// folder.
		uneven = uneven || len(rows) > 0
	}
	if uneven {
		v.uneven++
	}
	return nil
}

// hasValue reports whether a row has a value other than null and other than the strings that those
// writers use for null.
func hasValue(v *tables.Vector, row int) bool {
	if v.Null(row) {
		return false
	}
	return v.Kind() != tables.String || v.Str(row) != "" && v.Str(row) != "None"
}

// compare compares the rows of a table of children with the rows of a level.
func (v *verifier) compare(ctx context.Context, t *tables.Table, k int, rows []int32) error {
	if len(rows) == 0 {
		return nil
	}
	c := v.c
	var ids, types *tables.Vector
	var at model.Places
	wants := []model.Want{{To: &ids, Name: model.ColumnID, Kind: tables.String},
		{To: &types, Name: model.ColumnType, Kind: tables.String}}
	if c.container.Form != model.TacoFolder {
		wants = append(wants, at.At(tables.Int64)...)
	}
	if err := model.Columns(ctx, t, wants...); err != nil {
		return err
	}
	offsets, sizes := at.Offsets, at.Sizes
	for i, row := range rows {
		entry, err := c.container.EntryOf(ctx, k, int(row))
		if err != nil {
			return err
		}
		bad := func(format string, args ...any) error {
			return fault.New(fault.Corrupt, "row "+strconv.Itoa(i), format, args...)
		}
		switch {
		case ids.Null(i) || ids.Str(i) != entry.ID:
			return bad("the id is %q, but %q in METADATA", ids.Str(i), entry.ID)
		case types.Null(i) || types.Str(i) != entry.Type():
			return bad("the type is %q, but %s in METADATA", types.Str(i), entry.Type())
		case offsets != nil && (offsets.Null(i) || sizes.Null(i)):
			return bad("%s or %s is null", model.ColumnOffset, model.ColumnSize)
		case offsets != nil && (offsets.Int(i) != entry.Offset || sizes.Int(i) != entry.Size):
			return bad("%d bytes at %d, but %d bytes at %d in METADATA", sizes.Int(i), offsets.Int(i), entry.Size,
				entry.Offset)
		}
	}
	return nil
}
