// Package taco2 reads TACO 2 containers: ZIP (by TACO_HEADER), FOLDER, and the catalogs of many ZIPs
// in one file (__TACOCAT__) or a directory (.tacocat), as the TACO specification 2.0.0 describes
// them and as the writers of both generations produce them.
//
// The tree is read from the consolidated tables of METADATA. Some writers gave rows below level 0 the offsets of other
// samples if the names of folders were not in byte order. If the order of names or offsets gives reason to doubt, the
// directory of the ZIP is read and trusted instead.
package taco2

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/url"
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
	ColumnID       = "id"
	ColumnType     = "type"
	ColumnCurrent  = "internal:current_id" // a row's own number
	ColumnParent   = "internal:parent_id"
	ColumnOffset   = "internal:offset"
	ColumnSize     = "internal:size"
	ColumnSource   = "internal:source_file"
	ColumnRelative = "internal:relative_path"
)

// MetaName is the name of a folder's own table of children.
const MetaName = "__meta__"

// kind is the storage form of a container.
type kind uint8

const (
	zipFile kind = iota
	folder
	catFile
	catFolder
)

// ZIPFormat is the name of the format of a ZIP.
const (
	ZIPFormat     = "TACO 2 (ZIP)"
	IndexFormat   = "TACO 2 (TACOCAT)"
	FolderFormat  = "TACO 2 (FOLDER)"
	TacocatFormat = "TACO 2 (TACOCAT folder)"
)

var kindNames = [...]string{ZIPFormat, FolderFormat, IndexFormat, TacocatFormat}

// place is the place of a table: a range of an object, or the whole object.
type place struct {
	uri  string
	span span // size 0: the whole object
}

// Container is a TACO 2 container. It implements model.Container.
type Container struct {
	model.Common
	opener source.Opener
	kind   kind
	base   string // directory of the source files of a catalog; of a FOLDER its own directory
	coll   *Collection
	limits model.Limits
	places []place
	// collAt is the place of COLLECTION.json in a ZIP.
	collAt span
	// object has the size and tag of a ZIP, to open it again without a request.
	object source.Known

	mu      sync.Mutex
	levels  []*level
	readers map[string]source.Reader // open readers by URI
	absent  map[string]error         // URIs that could not be opened
}

// level is the table of a level and the values derived from it. Container.mu guards each field until it is set;
// afterwards the field is read-only.
type level struct {
	tbl     *tables.Table
	ids     *tables.Vector
	types   *tables.Vector
	offsets *tables.Vector
	sizes   *tables.Vector
	sources *tables.Vector
	// parents has the parent of each row in the level above; nil at level 0.
	parents []int32
	// first and rows are the children in this level: the children of row i are rows[first[i]:first[i+1]].
	first, rows []int32
	// spans replace offsets and sizes that turned out to be misplaced.
	spans   []span
	trusted bool // the offsets and sizes, or spans, were checked
}

// OpenZIP opens a ZIP. head has its first bytes, at least zipDataAt if there are as many.
func OpenZIP(ctx context.Context, o source.Opener, uri string, r source.Reader, head []byte,
	l model.Limits) (*Container, error) {
	container := newContainer(o, zipFile, uri, l)
	container.readers[uri], container.object = r, source.Known{Size: r.Size(), ETag: source.ETag(r)}
	levels, coll, err := parseHeader(head, r.Size())
	if err == nil {
		container.coll, container.readers[uri], err = readCollectionAhead(ctx, r, coll)
	}
	if err != nil {
		return nil, container.fail(err)
	}
	container.collAt = coll
	return container.located(levels)
}

// OpenTacocat opens a __TACOCAT__ file with source files in base. head has its first bytes.
func OpenTacocat(ctx context.Context, o source.Opener, uri, base string, r source.Reader, head []byte,
	l model.Limits) (*Container, error) {
	container := newContainer(o, catFile, uri, l)
	container.readers[uri], container.base = r, base
	levels, coll, err := parseTacocat(head, r.Size())
	if err == nil {
		container.coll, err = readCollection(ctx, r, coll, "COLLECTION.json")
	}
	if err != nil {
		return nil, container.fail(err)
	}
	return container.located(levels)
}

// located finishes a container whose levels are ranges of one file.
func (c *Container) located(levels []span) (*Container, error) {
	for _, s := range levels {
		c.places = append(c.places, place{c.Source, s})
	}
	c.levels = make([]*level, len(levels))
	return c, nil
}

// OpenFolder opens a FOLDER.
func OpenFolder(ctx context.Context, o source.Opener, uri string, l model.Limits) (*Container, error) {
	c := newContainer(o, folder, uri, l)
	c.base = uri
	return c.openFolder(ctx, Join(uri, "METADATA"))
}

// OpenTacocatFolder opens a .tacocat directory with source files in base.
func OpenTacocatFolder(ctx context.Context, o source.Opener, uri, base string, l model.Limits) (*Container, error) {
	c := newContainer(o, catFolder, uri, l)
	c.base = base
	return c.openFolder(ctx, uri)
}

// MaxLevels limits the levels of a directory to those that the header of a __TACOCAT__ has room
// for.
const MaxLevels = catLevels

func (c *Container) openFolder(ctx context.Context, tables string) (*Container, error) {
	coll := Join(c.Source, "COLLECTION.json")
	r, err := c.reader(ctx, coll)
	if err == nil {
		c.coll, err = readCollection(ctx, r, span{Off: 0, Size: r.Size()}, "COLLECTION.json")
	}
	if err != nil {
		return nil, c.fail(err)
	}
	known := 0 // the number of levels, if the collection has it
	if c.coll.PIT != nil {
		known = c.coll.PIT.Levels()
	}
	if known > MaxLevels {
		return nil, c.fail(fault.New(fault.Corrupt, "COLLECTION.json taco:pit_schema", fault.NoOffset,
			"it has %d levels, at most %d are supported", known, MaxLevels))
	}
	for k := 0; k < MaxLevels; k++ {
		uri := Join(tables, "level"+strconv.Itoa(k)+".parquet")
		if _, err := c.reader(ctx, uri); err != nil {
			if k > 0 && k >= known && fault.KindOf(err) == fault.NotFound {
				break
			}
			return nil, c.fail(err)
		}
		c.places = append(c.places, place{uri: uri})
	}
	c.levels = make([]*level, len(c.places))
	return c, nil
}

func newContainer(o source.Opener, k kind, uri string, l model.Limits) *Container {
	return &Container{Common: model.Common{Source: uri, Name: kindNames[k], Key: ColumnID}, opener: o, kind: k,
		limits: l, readers: map[string]source.Reader{}, absent: map[string]error{}}
}

// fail adds the container to an error and closes its files.
func (c *Container) fail(err error) error {
	return errors.Join(fault.WithFile(err, c.Source), c.Close())
}

// Join appends a relative path to a directory, which is a path or a URI. In a file:// URI and an HTTP
// URL the path is escaped. It is inserted before the query of the latter, since the query may be a
// signature for the whole directory.
func Join(folder, path string) string {
	if folder == "" {
		return path
	}
	query := ""
	if s := source.Scheme(folder); s == "http" || s == "https" || s == "file" {
		if i := strings.IndexByte(folder, '?'); i >= 0 && s != "file" {
			folder, query = folder[:i], folder[i:]
		}
		parts := strings.Split(path, "/")
		for i, p := range parts {
			parts[i] = url.PathEscape(p)
		}
		path = strings.Join(parts, "/")
	}
	return strings.TrimRight(folder, "/") + "/" + path + query
}

// reader returns an open reader of an object. The container closes it.
func (c *Container) reader(ctx context.Context, uri string) (source.Reader, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.readerLocked(ctx, uri)
}

func (c *Container) readerLocked(ctx context.Context, uri string) (source.Reader, error) {
	// Readers stay open until Close, because each level of a directory is read from the same few
	// files.
	if r := c.readers[uri]; r != nil {
		return r, nil
	}
	if err := c.absent[uri]; err != nil {
		return nil, err
	}
	file, err := c.opener.Open(ctx, uri)
	if err != nil {
		// Only missing files are remembered: a network error may pass, and would otherwise stay
		// until the container is closed.
		if k := fault.KindOf(err); k == fault.NotFound || errors.Is(err, fs.ErrNotExist) {
			c.absent[uri] = err
		}
		return nil, err
	}
	c.readers[uri] = file
	return file, nil
}

// Close implements model.Container.
func (c *Container) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, r := range c.readers {
		errs = append(errs, r.Close())
	}
	c.readers = map[string]source.Reader{}
	return errors.Join(errs...)
}

// Bytes implements model.Container.
func (c *Container) Bytes() int64 {
	if !c.mu.TryLock() {
		return 0
	}
	defer c.mu.Unlock()
	n := int64(0)
	for _, l := range c.levels {
		if l != nil {
			n += l.tbl.Bytes() + 4*int64(cap(l.parents)+cap(l.first)+cap(l.rows)) + 16*int64(cap(l.spans))
		}
	}
	return n
}

// Collection implements model.Container.
func (c *Container) Collection() json.RawMessage { return c.coll.Raw }

// PIT returns taco:pit_schema, or nil.
func (c *Container) PIT() *PIT { return c.coll.PIT }

// Levels implements model.Container.
func (c *Container) Levels() int { return len(c.places) }

// Table implements model.Container.
func (c *Container) Table(ctx context.Context, k int) (*tables.Table, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	level, err := c.level(ctx, k)
	if err != nil {
		return nil, err
	}
	return level.tbl, nil
}

func partOf(k int) string { return "level" + strconv.Itoa(k) }

// inLevel adds the level and the file to an error.
func (c *Container) inLevel(err error, k int) error {
	return fault.WithFile(fault.WithPart(err, partOf(k), 0), c.Source)
}

// level returns a level with its table. c.mu is held.
func (c *Container) level(ctx context.Context, k int) (*level, error) {
	if k < 0 || k >= len(c.levels) {
		return nil, c.NoRow(k, -1, len(c.levels))
	}
	if c.levels[k] != nil {
		return c.levels[k], nil
	}
	place := c.places[k]
	file, err := c.readerLocked(ctx, place.uri)
	if err != nil {
		return nil, err
	}
	if place.span.Size == 0 {
		place.span.Size = file.Size()
	}
	table, err := model.ReadTable(ctx, file, place.span, c.limits)
	if err != nil {
		return nil, c.inLevel(err, k)
	}
	l := &level{tbl: table}
	if l.ids, err = c.column(ctx, table, k, ColumnID, tables.String); err != nil {
		return nil, err
	}
	if l.types, err = c.column(ctx, table, k, ColumnType, tables.String); err != nil {
		return nil, err
	}
	if c.kind == catFile || c.kind == catFolder {
		if l.sources, err = c.column(ctx, table, k, ColumnSource, tables.String); err != nil {
			return nil, err
		}
	}
	c.levels[k] = l
	return l, nil
}

// column returns a mandatory column of a given type.
func (c *Container) column(ctx context.Context, t *tables.Table, k int, name string,
	want tables.Kind) (*tables.Vector, error) {
	values, err := model.Column(ctx, t, name, want)
	if err != nil {
		return nil, c.inLevel(err, k)
	}
	return values, nil
}

// row returns an error for a value in a row.
func (c *Container) row(kind fault.Kind, k, row int, format string, args ...any) error {
	return fault.WithFile(fault.New(kind, partOf(k)+" row "+strconv.Itoa(row), fault.NoOffset, format, args...),
		c.Source)
}
