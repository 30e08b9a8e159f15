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
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/tables"
)

// Names of columns.
const (
	columnID       = "id"
	columnType     = "type" // FILE or FOLDER; in no file, but in the tables of the model
	columnCurrent  = "internal:current_id"
	columnParent   = "internal:parent_id"
	columnRelative = "internal:relative_path"
	columnOffset   = "internal:offset"
	columnSize     = "internal:size"
	columnSource   = "internal:source_file"
)

// FolderFormat is the format of a directory, which has no checksums, and ZIPFormat of an archive.
const (
	FolderFormat = "TACO 3 (FOLDER)"
	ZIPFormat    = "TACO 3 (ZIP)"
)

const catFormat = "TACO 3 (TACOCAT)"

// joinURI appends a relative path to a directory.
type joinURI func(folder, path string) string

// Container is a TACO 3 container. It implements model.Container.
type Container struct {
	model.Common
	opener  source.Opener
	join    joinURI
	base    string // the directory of a FOLDER, and the one of a catalog's ZIPs
	coll    *collection
	index   *index       // of a ZIP
	object  source.Known // a ZIP, to open it again without a request
	reader  source.Reader
	limits  model.Limits
	levels  []*level
	byDepth [][]*level

	mu     sync.Mutex
	joined []*tables.Table // of each depth
	// locations are the columns PATH::location of the wide table, each a table of its own.
	locations map[string]*tables.Table
}

// level is the table of a folder. Container.mu guards what is read later.
type level struct {
	name   string // as taco:metadata has it
	folder string // below a sample; "" for its root, and for the level of samples
	depth  int
	above  *level // nil for the level of samples

	tbl   *tables.Table // nil until it is read
	base  int           // the number of rows in front of it in its depth
	ids   []string      // nil at the level of samples, whose table has them
	paths *tables.Vector
	// offsets and sizes are nil in a FOLDER and at the level of samples, sources elsewhere than in a catalog.
	offsets, sizes, sources *tables.Vector
	parents                 []int32 // rows of the level above
	first, rows             []int32 // the children in this level of row i above are rows[first[i]:first[i+1]]
}

// OpenZIP opens a cozip, of profile TACO or Flat. head has its first bytes. It closes r if it fails.
func OpenZIP(ctx context.Context, o source.Opener, join func(folder, path string) string, uri string, r source.Reader,
	head []byte, l model.Limits) (model.Container, error) {
	object := source.Known{Size: r.Size(), ETag: source.ETag(r)}
	index, tail, err := readIndex(ctx, r, head)
	if err != nil {
		return nil, errors.Join(fault.WithFile(err, uri), r.Close())
	}
	if index.profile == profileFlat {
		return openFlat(ctx, uri, tail, object, index, l)
	}
	container := &Container{Common: common(uri, ZIPFormat), opener: o, join: join, index: index, object: object,
		reader: tail, limits: l}
	place, ok := index.spans[collectionName]
	if !ok {
		err = fault.New(fault.Corrupt, indexPart, indexAt, "does not list %s", collectionName)
	} else {
		container.coll, err = readCollection(ctx, container.reader, place)
	}
	if err == nil {
		err = container.layOut()
	}
	if err == nil {
		err = container.listed()
	}
	if err != nil {
		return nil, errors.Join(fault.WithFile(err, uri), container.Close())
	}
	return container, nil
}

// listed checks that the index lists the table of every level, and no other.
func (c *Container) listed() error {
	for _, l := range c.levels {
		if _, ok := c.index.spans[l.entry()]; !ok {
			return fault.New(fault.Corrupt, indexPart, indexAt, "does not list %s", l.entry())
		}
	}
	if n := len(c.levels) + 1; len(c.index.names) != n {
		return fault.New(fault.Corrupt, indexPart, indexAt, "lists %d entries: %s and %d tables are declared",
			len(c.index.names), collectionName, n-1)
	}
	return nil
}

// OpenFolder opens a directory with COLLECTION.json, METADATA and DATA.
func OpenFolder(ctx context.Context, o source.Opener, join func(folder, path string) string, uri string,
	l model.Limits) (model.Container, error) {
	return openDirectory(ctx, &Container{Common: common(uri, FolderFormat), opener: o, join: join, base: uri,
		limits: l})
}

// OpenCatalog opens a directory with the tables of many ZIPs, which are in base.
func OpenCatalog(ctx context.Context, o source.Opener, join func(folder, path string) string, uri, base string,
	l model.Limits) (model.Container, error) {
	return openDirectory(ctx, &Container{Common: common(uri, catFormat), opener: o, join: join, base: base, limits: l})
}

func openDirectory(ctx context.Context, c *Container) (model.Container, error) {
	file, err := c.opener.Open(ctx, c.join(c.Source, collectionName))
	if err != nil {
		return nil, fault.WithFile(err, c.Source)
	}
	c.coll, err = readCollection(ctx, file, span{Off: 0, Size: file.Size()})
	if err = errors.Join(err, file.Close()); err == nil {
		err = c.layOut()
	}
	if err != nil {
		return nil, fault.WithFile(err, c.Source)
	}
	return c, nil
}

func common(uri, format string) model.Common {
	return model.Common{Source: uri, Name: format, Key: columnID}
}

// layOut makes the levels of taco:structure.
func (c *Container) layOut() error {
	byFolder := map[string]*level{}
	for _, name := range c.coll.structure.levels {
		l := &level{name: name}
		if name != "sample" {
			l.folder = strings.TrimPrefix(strings.TrimPrefix(name, "children"), "/")
			l.depth, l.above = 1, c.levels[0]
			if l.folder != "" {
				l.above = byFolder[strings.TrimPrefix(path.Dir("/"+l.folder), "/")]
				l.depth = l.above.depth + 1
			}
			byFolder[l.folder] = l
		}
		if len(c.byDepth) == l.depth {
			c.byDepth = append(c.byDepth, nil)
		}
		c.levels, c.byDepth[l.depth] = append(c.levels, l), append(c.byDepth[l.depth], l)
	}
	c.joined = make([]*tables.Table, len(c.byDepth))
	return nil
}

// entry returns the name of the table in a ZIP and in a FOLDER.
func (l *level) entry() string { return "METADATA/" + l.file() }

// file returns the name of the table in a catalog.
func (l *level) file() string { return strings.ReplaceAll(l.name, "/", "__") + ".parquet" }

// Collection implements model.Container.
func (c *Container) Collection() json.RawMessage { return c.coll.raw }

// Named implements model.Container.
func (c *Container) Named() model.Named { return c }

// Levels implements model.Container.
func (c *Container) Levels() int { return len(c.byDepth) }

// Close implements model.Container. Directories are opened for each read.
func (c *Container) Close() error {
	if c.reader == nil {
		return nil
	}
	return c.reader.Close()
}

// Bytes implements model.Container.
func (c *Container) Bytes() int64 {
	n := int64(len(c.coll.raw))
	if t, ok := c.reader.(*model.Tail); ok {
		n += int64(len(t.Bytes))
	}
	if !c.mu.TryLock() {
		return n
	}
	defer c.mu.Unlock()
	for _, t := range c.locations {
		n += t.Bytes()
	}
	for _, l := range c.levels {
		if l.tbl != nil {
			n += l.tbl.Bytes() + 4*int64(cap(l.parents)+cap(l.first)+cap(l.rows)) + 16*int64(cap(l.ids))
		}
	}
	return n
}

// Table implements model.Container: the table of samples, or the tables of a depth with the columns id and type.
func (c *Container) Table(ctx context.Context, depth int) (*tables.Table, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.read(ctx, depth); err != nil {
		return nil, err
	}
	if depth == 0 {
		return c.levels[0].tbl, nil
	}
	if c.joined[depth] == nil {
		if err := c.joinDepth(depth); err != nil {
			return nil, fault.WithFile(err, c.Source)
		}
	}
	return c.joined[depth], nil
}

// joinDepth joins the tables of a depth. c.mu is held.
func (c *Container) joinDepth(depth int) error {
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
			types = append(types, c.kind(level, i).String())
		}
	}
	stored := tbls[0]
	if len(tbls) > 1 {
		var err error
		if stored, err = tables.Concat(tbls, tables.Mixed); err != nil {
			return err
		}
	}
	c.joined[depth] = tables.Join(tables.FromVectors([]string{columnID, columnType},
		[]*tables.Vector{tables.NewStrings(ids, nil), tables.NewStrings(types, nil)}), stored)
	return nil
}

// LevelColumn returns the name that a column of a level has in the table of its depth, if another level of that depth
// has a column of this name with other values.
func LevelColumn(level, name string) string { return level + "/" + name }

// apart returns the columns that tables of a depth have with values of different kinds, which no column holds together.
func (c *Container) apart(depth int) map[string]bool {
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

// kind returns what a row of a level below the samples is: the folders of the structure are folders.
func (c *Container) kind(l *level, row int) model.Kind {
	if _, is := c.coll.structure.members[strings.TrimPrefix(l.folder+"/"+l.ids[row], "/")]; is {
		return model.Folder
	}
	return model.File
}

// at returns the level of a row of a depth, and the row there. c.mu is held.
func (c *Container) at(ctx context.Context, depth, row int) (*level, int, error) {
	if err := c.read(ctx, depth); err != nil {
		return nil, 0, err
	}
	for _, l := range c.byDepth[depth] {
		if row >= l.base && row < l.base+l.tbl.Len() {
			return l, row - l.base, nil
		}
	}
	return nil, 0, c.NoRow(depth, row, len(c.byDepth))
}

// Parents implements model.Container.
func (c *Container) Parents(ctx context.Context, depth int) ([]int32, error) {
	if depth == 0 {
		return nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.read(ctx, depth); err != nil {
		return nil, err
	}
	var parents []int32
	for _, l := range c.byDepth[depth] {
		for _, p := range l.parents {
			parents = append(parents, int32(l.above.base)+p)
		}
	}
	return parents, nil
}

// Children implements model.Container.
func (c *Container) Children(ctx context.Context, depth, row int) ([]int32, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	above, i, err := c.at(ctx, depth, row)
	if err != nil || depth+1 == len(c.byDepth) {
		return nil, err
	}
	if err := c.read(ctx, depth+1); err != nil {
		return nil, err
	}
	var rows []int32
	for _, level := range c.byDepth[depth+1] {
		if level.above != above {
			continue
		}
		for _, k := range level.rows[level.first[i]:level.first[i+1]] {
			rows = append(rows, int32(level.base)+k)
		}
	}
	return rows, nil
}

// Entry implements model.Container.
func (c *Container) Entry(ctx context.Context, depth, row int) (model.Entry, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	level, i, err := c.at(ctx, depth, row)
	if err != nil {
		return model.Entry{}, err
	}
	if depth == 0 {
		ids, err := model.Column(ctx, level.tbl, columnID, tables.String)
		if err != nil {
			return model.Entry{}, err
		}
		if ids.Null(i) {
			return model.Entry{}, c.inRow(level, i, "id is null")
		}
		return model.Entry{ID: ids.Str(i), Kind: model.Folder, Row: row}, nil
	}
	entry := model.Entry{ID: level.ids[i], Kind: c.kind(level, i), Level: depth, Row: row}
	if entry.Kind == model.Folder {
		return entry, nil
	}
	return entry, c.place(level, i, &entry)
}

// place sets where the bytes of a file are.
func (c *Container) place(l *level, i int, e *model.Entry) error {
	if c.Name == FolderFormat {
		// The path becomes one of the file system, so a hostile table must not lead out of the directory.
		p := l.paths.Str(i)
		if model.Climbs(p) {
			return c.inRow(l, i, "%s %q is not a path below DATA", columnRelative, p)
		}
		e.URI, e.Offset, e.Size = c.join(c.base, "DATA/"+p), model.Whole, model.Whole
		return nil
	}
	e.URI, e.Object = c.Source, c.object
	if l.sources != nil {
		name := l.sources.Str(i)
		if l.sources.Null(i) || model.Climbs(name) {
			return c.inRow(l, i, "%s %q is not the name of a file below", columnSource, name)
		}
		e.URI, e.Object = c.join(c.base, name), source.Known{}
	}
	if l.offsets.Null(i) || l.sizes.Null(i) {
		return c.inRow(l, i, "%s or %s is null", columnOffset, columnSize)
	}
	e.Offset, e.Size = l.offsets.Int(i), l.sizes.Int(i)
	past := l.sources == nil && (e.Offset > c.object.Size || e.Size > c.object.Size-e.Offset)
	if e.Offset < indexAt || e.Size < 1 || past {
		return c.inRow(l, i, "%d bytes at %d: the file has %d bytes", uint64(e.Size), uint64(e.Offset), c.object.Size)
	}
	return nil
}

// inRow returns an error for a value in a row.
func (c *Container) inRow(l *level, row int, format string, args ...any) error {
	return fault.WithFile(corrupt(l.name+" row "+strconv.Itoa(row), format, args...),
		c.Source)
}

// missing reports whether an error says that a file does not exist.
func missing(err error) bool {
	return fault.KindOf(err) == fault.NotFound || errors.Is(err, fs.ErrNotExist)
}
