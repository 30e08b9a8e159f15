package taco2

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/zipdir"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
)

// Entry implements model.Reader.
func (c *reader) Entry(ctx context.Context, k, row int) (store.Entry, error) {
	level := c.levels[k]
	entry := store.Entry{ID: level.IDs.Str(row)}
	if level.IDs.Null(row) {
		return entry, c.container.InRow(k, row, "id is null")
	}
	// The id becomes part of a path in a FOLDER, so a hostile container must not lead out of it.
	if model.Climbs(entry.ID) {
		return entry, c.container.InRow(k, row, "id %q could lead out of its folder", entry.ID)
	}
	name := level.types.Bytes(row)
	if entry.Folder = string(name) == store.EntryType(true); string(name) != entry.Type() {
		return entry, c.container.InRow(k, row, "type %q is neither FILE nor FOLDER", name)
	}
	if c.container.Form != model.TacoFolder {
		if err := c.settle(ctx, k); err != nil {
			return entry, err
		}
		err := c.container.Place(&level.Places, row, &entry)
		return entry, err
	}
	path, err := c.path(ctx, k, row)
	if err != nil {
		return entry, err
	}
	entry.URI, entry.Offset, entry.Size = source.Join(c.container.URI, "DATA/"+path), store.Whole, store.Whole
	if entry.Folder {
		entry.URI = source.Join(entry.URI, MetaName)
	}
	return entry, nil
}

// path returns the ids from level 0 down to a row, joined by "/". It refuses ids that could lead out of a directory.
func (c *reader) path(ctx context.Context, k, row int) (string, error) {
	ids, err := c.container.IDsTo(ctx, k, row)
	for _, id := range slices.Backward(ids) {
		if what := BadID(id); what != "" {
			return "", c.container.InRow(k, row, "id %q %s", id, what)
		}
	}
	return strings.Join(ids, "/"), err
}

// settle decides whether the offsets of a level can be trusted, and replaces those that cannot.
func (c *reader) settle(ctx context.Context, k int) error {
	level := c.levels[k]
	if level.trusted {
		return nil
	}
	if err := model.Columns(ctx, level.Table, level.At(tables.Int64)...); err != nil {
		return c.inLevel(err, k)
	}
	// Only levels below 0 can be misplaced, because level 0 has no folders whose order could differ.
	if k > 0 {
		doubtful, err := c.doubtful(ctx, level, k)
		if err != nil {
			return err
		}
		if len(doubtful) > 0 {
			if err := c.replace(ctx, level, k, doubtful); err != nil {
				return err
			}
		}
	}
	level.trusted = true
	return nil
}

// doubtful returns the source files whose rows of a level may have misplaced offsets: the paths of the folders above
// break byte order, with or without a separator at the end, or the offsets of the files break storage order.
func (c *reader) doubtful(ctx context.Context, l *levelTable, k int) (doubtful map[int32]bool, err error) {
	if _, err := c.container.Linked(ctx, k); err != nil {
		return nil, err
	}
	doubtful = map[int32]bool{}
	above, before := c.levels[k-1], make([]string, len(c.sources))
	for i := range above.Table.Len() {
		src := above.from(i)
		if string(above.types.Bytes(i)) != "FOLDER" || doubtful[src] {
			continue
		}
		path := above.IDs.Str(i)
		if k > 1 {
			if path, err = c.path(ctx, k-1, i); err != nil {
				return nil, err
			}
		}
		if last := before[src]; last != "" && (path <= last || path+"/" <= last+"/") {
			doubtful[src] = true
		}
		before[src] = path
	}
	end := slices.Repeat([]int64{-1}, len(c.sources))
	for i := range l.Table.Len() {
		if string(l.types.Bytes(i)) != "FILE" || l.Offsets.Null(i) {
			continue
		}
		off, src := l.Offsets.Int(i), l.from(i)
		if off <= end[src] {
			doubtful[src] = true
		}
		end[src] = max(end[src], off)
	}
	return doubtful, nil
}

// replace gives the rows of doubtful source files the places in the directories of the ZIPs. The
// rows of missing source files keep theirs, because nothing of them can be read anyway.
func (c *reader) replace(ctx context.Context, l *levelTable, k int, doubtful map[int32]bool) error {
	stored := make(map[span]bool, l.Table.Len())
	spans := make([]span, l.Table.Len())
	for i := range spans {
		if l.Offsets.Null(i) || l.Sizes.Null(i) {
			return c.container.InRow(k, i, "%s or %s is null", model.ColumnOffset, model.ColumnSize)
		}
		spans[i] = span{Off: l.Offsets.Int(i), Size: l.Sizes.Int(i)}
		stored[spans[i]] = true
	}
	for src := range doubtful {
		directory, err := c.zip(ctx, l, k, c.sources[src])
		if err != nil {
			return err
		}
		if directory == nil {
			continue
		}
		for i := range spans {
			// A place outside the file stays, because it was never another sample's: reading it is an error.
			if l.from(i) != src || !spans[i].In(0, directory.r.Size()) {
				continue
			}
			if spans[i], err = c.find(ctx, directory, l, k, i, stored); err != nil {
				return err
			}
		}
	}
	l.Spans = spans
	return nil
}

// zipDirectory is the directory of an open ZIP.
type zipDirectory struct {
	r       source.Reader
	entries map[string]zipdir.Entry
}

// zip reads the directory of a source file of a level, or returns nil if the file is missing.
func (c *reader) zip(ctx context.Context, l *levelTable, k int, name string) (*zipDirectory, error) {
	uri, after := c.container.URI, c.collAt.End()
	if l.Sources != nil {
		if model.BadSource(name) {
			return nil, c.inLevel(fault.New(fault.Corrupt, "column "+model.ColumnSource,
				"%q is not a file below the directory", name), k)
		}
		uri = source.Join(c.container.From.Base, name)
	}
	file, err := c.container.File(ctx, uri)
	if err != nil {
		if l.Sources != nil && fault.KindOf(err) == fault.NotFound {
			return nil, nil
		}
		return nil, err
	}
	entries, err := zipdir.Read(ctx, file, after, isData)
	if err != nil {
		return nil, fault.WithFile(err, uri)
	}
	return &zipDirectory{file, entries}, nil
}

func isData(name []byte) bool { return bytes.HasPrefix(name, []byte("DATA/")) }

// find returns the place of the data of a row's own ZIP entry. stored are the places that the rows
// of the level state, in any order.
func (c *reader) find(ctx context.Context, z *zipDirectory, l *levelTable, k, row int,
	stored map[span]bool) (span, error) {
	path, err := c.path(ctx, k, row)
	if err != nil {
		return span{}, err
	}
	name := "DATA/" + path
	if string(l.types.Bytes(row)) == "FOLDER" {
		name += "/" + MetaName
	}
	entry, ok := z.entries[name]
	if !ok || !entry.Plain {
		return span{}, c.container.InRow(k, row, "the ZIP has no stored entry %q", name)
	}
	s := span{Off: entry.Local + int64(30+len(name)), Size: entry.Size}
	// Data without an extra field follow the name: if a row states this place, no header needs to be read.
	if stored[s] {
		return s, nil
	}
	data, err := zipdir.Data(ctx, z.r, name, entry)
	return span(data), err
}

// Parents implements model.Reader. A row has the position of its parent in the level above, in a catalog among the rows
// of the same source file.
func (c *reader) Parents(ctx context.Context, k int) ([]int32, error) {
	level, up := c.levels[k], c.levels[k-1]
	ids, err := model.Column(ctx, level.Table, model.ColumnParent, tables.Int64)
	if err != nil {
		return nil, c.inLevel(err, k)
	}
	byFile := make([][]int32, len(c.sources)) // rows by source
	byFile[0] = make([]int32, 0, up.Table.Len())
	for i := range up.Table.Len() {
		src := up.from(i)
		byFile[src] = append(byFile[src], int32(i))
	}
	parents := make([]int32, level.Table.Len())
	for i := range parents {
		among := byFile[level.from(i)]
		switch {
		case ids.Null(i):
			return nil, c.container.InRow(k, i, "%s is null", model.ColumnParent)
		case ids.Int(i) < 0 || ids.Int(i) >= int64(len(among)):
			return nil, c.container.InRow(k, i, "%s is %d, the level above has rows 0 to %d", model.ColumnParent,
				ids.Int(i), len(among)-1)
		}
		parents[i] = among[ids.Int(i)]
	}
	return parents, nil
}

// number sets the numbers of the source files of a level's rows.
func (c *reader) number(l *levelTable) {
	l.numbers = make([]int32, l.Table.Len())
	for i := range l.numbers {
		name := l.Sources.Bytes(i)
		n, known := c.numbers[string(name)]
		if !known {
			n = int32(len(c.sources))
			c.numbers[string(name)], c.sources = n, append(c.sources, string(name))
		}
		l.numbers[i] = n
	}
}

// from returns the number of the source file of a row; outside catalogs all rows are of the container's own.
func (l *levelTable) from(row int) int32 {
	if l.numbers == nil {
		return 0
	}
	return l.numbers[row]
}
