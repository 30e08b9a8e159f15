package rows

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/lru"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/refcache"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/tables"
)

// Container is a dataset of the samples of level 0 of containers, those that a subset leaves. It is safe
// for concurrent use.
type Container struct {
	set      *taco.Dataset
	src      *spec.Source
	options  resources.Options
	opener   source.Opener // of what lies below the roots
	level0   *tables.Table
	rows     []int32        // of level 0, by sample
	data     *tables.Table  // the result of the last query among the conditions, or nil
	at       []int32        // of level 0, by row of data
	left     taco.Selection // what conditions on place and time left of the levels below 0; nil: all
	base     taco.Selection // what groups of containers left; nil without groups
	selected bool           // the subset is applied
	keep     bool           // there will be more questions: decoded geometries stay in memory
	fields   []member
	assets   *lru.Cache[memberKey, catalog.Asset]
	store    *indexStore
	print    string
	Files    *refcache.Cache[string, *ContainerFile] // by the container's name for it
}

type memberKey struct {
	field int
	row   int64
}

// member is where a field's part of each sample is found.
type member struct {
	name  string
	kind  catalog.Kind
	level int
	rows  []int32          // of that level, by sample; -1 where a sample has none
	value *tables.Vector   // of what rides along
	blobs []*tables.Vector // of a raster: the first that is not null has its index
}

// ContainerFile is a file that rasters lie in.
type ContainerFile struct {
	path  string // to open it by
	Size  int64
	mtime time.Time
	etag  string
	cache *indexFile
}

// isContainer reports whether a source is one.
func isContainer(ctx context.Context, src *spec.Source, o resources.Options) (bool, error) {
	if len(src.Parts) > 0 || src.BasePath != "" {
		return true, nil
	}
	switch strings.ToLower(filepath.Ext(src.Source)) {
	case ".parquet", ".pq", ".geoparquet", ".csv", ".tsv", ".tif", ".tiff", ".rumi":
		return false, nil
	}
	return taco.Is(ctx, Rooted(o), src.Source), ctx.Err()
}

// Rooted returns an opener of what lies below the roots.
func Rooted(o resources.Options) source.Opener {
	if o.Roots == nil {
		return o.Opener
	}
	return &rootedOpener{o}
}

type rootedOpener struct{ o resources.Options }

// Open implements source.Opener.
func (r *rootedOpener) Open(ctx context.Context, uri string) (source.Reader, error) {
	path, err := catalog.Resolve(uri, r.o.Roots)
	if err != nil {
		return nil, err
	}
	return r.o.Opener.Open(ctx, path)
}

// OpenKnown implements source.KnownOpener.
func (r *rootedOpener) OpenKnown(ctx context.Context, uri string, k source.Known) (source.Reader, error) {
	path, err := catalog.Resolve(uri, r.o.Roots)
	if err != nil {
		return nil, err
	}
	return source.OpenKnown(ctx, r.o.Opener, path, k)
}

// openContainer opens the containers of a source, and takes its subset of the samples.
func openContainer(ctx context.Context, src *spec.Source, fields []spec.Field, o resources.Options) (*Container, error) {
	c := &Container{
		src: src, options: o, opener: Rooted(o), assets: lru.New[memberKey, catalog.Asset](o.CacheBytes),
		store: newIndexStore(o.IndexCache), Files: newContainerFiles(),
	}
	only, err := src.Only()
	if err != nil {
		return nil, err
	}
	mode, err := src.ColumnsMode()
	if err != nil {
		return nil, err
	}
	c.set, err = taco.Open(ctx, c.opener, append([]string{src.Source}, src.Parts...), taco.Options{
		BasePath: src.BasePath, Mode: mode, Filters: only, Chosen: src.Joins(), Warn: func(m string) { o.Logger.Warn(m, "source", src.Source) },
	})
	if err != nil {
		return nil, cmp.Or(noneOf(ctx, c.opener, src), fault.WithFile(err, src.Source))
	}
	if err := c.open(ctx, fields); err != nil {
		return nil, errors.Join(fault.WithFile(err, src.Source), c.Close())
	}
	return c, nil
}

// noneOf is the error about a list of paths with a file that is no container, such as a raster; nil if all
// are, or one is not there.
func noneOf(ctx context.Context, o source.Opener, src *spec.Source) error {
	for _, p := range src.Parts {
		r, err := o.Open(ctx, p)
		if err != nil {
			continue
		}
		_ = r.Close()
		if !taco.Is(ctx, o, p) {
			return fault.WithFile(fault.New(fault.Unsupported, "dataset", fault.NoOffset,
				"a list of paths is one of containers, and this is none; files are named by a folder, a glob or a table"), p)
		}
	}
	return nil
}

func (c *Container) open(ctx context.Context, fields []spec.Field) error {
	if err := c.selectSamples(ctx); err != nil {
		return err
	}
	c.data, c.at = nil, nil // the rows are what counts
	if len(c.rows) == 0 && c.level0 != nil {
		return fault.New(fault.NotFound, "dataset", fault.NoOffset, "none of its %d samples is selected", c.level0.Len())
	}
	if len(c.rows) > 0 {
		for _, f := range fields {
			m, err := c.member(ctx, f)
			if err != nil {
				return partly(err, fmt.Sprintf("field %q", f.Name))
			}
			if f.Kind == spec.TextField && m.kind == catalog.Raster {
				m.kind = catalog.Text // the path of the sample: see Value
			}
			c.fields = append(c.fields, m)
		}
	}
	return c.hash(ctx)
}

// partly puts a part before that of an error, whose offset stays what it is.
func partly(err error, part string) error {
	base := int64(fault.NoOffset)
	var e *fault.Error
	if errors.As(err, &e) && e.Off >= 0 {
		base = 0
	}
	if fault.KindOf(err) == 0 {
		return fmt.Errorf("%s: %w", part, err)
	}
	return fault.WithPart(err, part, base)
}

// Len implements table.
func (c *Container) Len() int64 { return int64(len(c.rows)) }

// Kind implements table.
func (c *Container) Kind(field int) catalog.Kind { return c.fields[field].kind }

// Fingerprint implements table.
func (c *Container) Fingerprint() string { return c.print }

// Close implements table. Indexes that were made are kept for the next time.
func (c *Container) Close() error {
	if err := c.Files.Close(); err != nil {
		c.options.Logger.Warn("chunk indexes are not kept", "error", err)
	}
	return c.set.Close()
}

// ID implements table: the sample's id.
func (c *Container) ID(ctx context.Context, row int64) (string, error) {
	ids, err := c.ids(ctx)
	if err != nil {
		return "", err
	}
	return ids.Text(int(c.rows[row])), nil
}

func (c *Container) ids(ctx context.Context) (*tables.Vector, error) {
	ids, err := c.level0.Column(ctx, c.set.IDColumn())
	if err == nil && ids.Kind() != tables.Text {
		err = fault.New(fault.Corrupt, "column "+c.set.IDColumn(), fault.NoOffset, "has type %v, want text", ids.Type())
	}
	return ids, fault.WithFile(err, c.src.Source)
}

// Value implements table. Of a field of rasters, or of their paths as texts, it is the path of the sample that has it.
func (c *Container) Value(ctx context.Context, field int, row int64) (catalog.Value, error) {
	m := &c.fields[field]
	at := m.rows[row]
	switch {
	case at < 0:
		return catalog.Value{Null: true}, nil
	case m.value == nil:
		e, err := c.set.Entry(ctx, m.level, int(at))
		return catalog.Value{Text: e.Path}, err
	}
	return valueOf(m.value, int(at)), nil
}

// kindOf returns what the values of a column are for a loader.
func kindOf(name string, t tables.Type) (catalog.Kind, error) {
	switch t.Kind {
	case tables.Bool, tables.Int64, tables.Uint64, tables.Timestamp, tables.Date, tables.Time:
		return catalog.Int, nil
	case tables.Float64:
		return catalog.Float, nil
	case tables.Text:
		return catalog.Text, nil
	}
	return 0, fault.New(fault.Unsupported, "column "+name, fault.NoOffset, "holds values of type %v, which do not ride along", t)
}

// valueOf returns a value of a column: times are microseconds since 1970, dates days.
func valueOf(v *tables.Vector, i int) catalog.Value {
	if v.Null(i) {
		return catalog.Value{Null: true}
	}
	switch v.Kind() {
	case tables.Float64:
		return catalog.Value{Float: v.Float(i)}
	case tables.Text:
		return catalog.Value{Text: v.Text(i)}
	}
	return catalog.Value{Int: v.Int(i)}
}

// Scan implements columns: a column of level 0, or "PATH@COLUMN" of what lies below.
func (c *Container) Scan(ctx context.Context, column string, visit func(row int64, v catalog.Value) error) (catalog.Kind, error) {
	m, err := c.valueMember(ctx, column)
	if err != nil {
		return 0, fault.WithFile(err, c.src.Source)
	}
	for row, at := range m.rows {
		v := catalog.Value{Null: true}
		if at >= 0 {
			v = valueOf(m.value, int(at))
		}
		if err := visit(int64(row), v); err != nil {
			return m.kind, err
		}
		if row%4096 == 0 && ctx.Err() != nil {
			return m.kind, ctx.Err()
		}
	}
	return m.kind, nil
}

// Centroids implements centred: points of level 0 in well-known binary, which TACO has in longitude and latitude.
func (c *Container) Centroids(ctx context.Context, visit func(row int64, lon, lat float64) error) error {
	name := ""
	for _, col := range centroidColumns {
		if c.level0 != nil && name == "" && c.level0.Index(col) >= 0 {
			name = col
		}
	}
	if name == "" {
		return fault.WithFile(fault.New(fault.NotFound, "dataset", fault.NoOffset, "has neither columns of bounds nor one of centroids (%s)", strings.Join(centroidColumns, ", ")), c.src.Source)
	}
	v, err := c.level0.Column(ctx, name)
	if err == nil && v.Kind() != tables.Binary {
		err = fault.New(fault.Unsupported, "column "+name, fault.NoOffset, "holds values of type %v, not well-known binary", v.Type())
	}
	for row := 0; err == nil && row < len(c.rows); row++ {
		lon, lat := math.NaN(), math.NaN()
		if at := int(c.rows[row]); !v.Null(at) {
			if lon, lat, err = taco.Point(v.Bytes(at)); err != nil {
				err = fault.New(fault.KindOf(err), fmt.Sprintf("column %s of row %d", name, row), fault.NoOffset, "%v", err)
				break
			}
		}
		if err = visit(int64(row), lon, lat); err == nil {
			err = ctx.Err()
		}
	}
	return fault.WithFile(err, c.src.Source)
}

// centroidColumns are those that containers have.
var centroidColumns = []string{"stac:centroid", "istac:centroid"}

// TimeUnit implements timed.
func (c *Container) TimeUnit(ctx context.Context, column string) time.Duration {
	m, err := c.valueMember(ctx, column)
	if err != nil || m.value == nil {
		return 0
	}
	switch m.value.Kind() {
	case tables.Date:
		return 24 * time.Hour
	case tables.Timestamp:
		return time.Microsecond
	}
	return 0
}

// ScanIDs implements columns.
func (c *Container) ScanIDs(ctx context.Context, visit func(row int64, id string) error) error {
	ids, err := c.ids(ctx)
	if err != nil {
		return err
	}
	for row, at := range c.rows {
		if err := visit(int64(row), ids.Text(int(at))); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// Asset implements table.
func (c *Container) Asset(ctx context.Context, field int, row int64) (catalog.Asset, error) {
	key := memberKey{field, row}
	if a, ok := c.assets.Get(key); ok {
		return a, nil
	}
	a, err := c.asset(ctx, &c.fields[field], row)
	if err != nil {
		return catalog.Asset{}, fault.WithFile(err, c.src.Source)
	}
	c.assets.Add(key, a, assetCost(a))
	return a, nil
}

// assetCost is about the memory of an asset in bytes.
func assetCost(a catalog.Asset) int64 {
	n := 512 + int64(cap(a.Index.Ranges))*16 + int64(len(a.URI)+len(a.Member)+cap(a.Bytes))
	if m := a.Index.Mask; m != nil {
		n += 256 + int64(cap(m.Ranges))*16
	}
	return n
}

var errNoRaster = errors.New("loader: the field is no raster")

func (c *Container) asset(ctx context.Context, m *member, row int64) (catalog.Asset, error) {
	if m.kind != catalog.Raster {
		return catalog.Asset{}, errNoRaster
	}
	at := m.rows[row]
	if at < 0 {
		id, err := c.ID(ctx, row)
		if err == nil {
			err = fault.New(fault.NotFound, "sample "+id, fault.NoOffset, "has nothing for the field %q", m.name)
		}
		return catalog.Asset{}, err
	}
	e, err := c.set.Entry(ctx, m.level, int(at))
	if err != nil {
		return catalog.Asset{}, err
	}
	var x *chunk.Index
	for _, v := range m.blobs {
		if v.Null(int(at)) || len(v.Bytes(int(at))) == 0 {
			continue
		}
		if x, err = catalog.ParseIndex(v.Bytes(int(at)), c.options.MaxChunkBytes); err != nil {
			return catalog.Asset{}, partly(err, "sample "+e.Path)
		}
		break
	}
	return c.place(ctx, e, x)
}

// place makes the asset of an entry. x is its index, or nil where it is still to be read.
func (c *Container) place(ctx context.Context, e taco.Entry, x *chunk.Index) (catalog.Asset, error) {
	if e.Kind == taco.Folder {
		return catalog.Asset{}, fault.New(fault.Unsupported, "sample "+e.Path, fault.NoOffset, "is a folder, and no raster")
	}
	if e.Offset == taco.Whole {
		return c.file(ctx, e, x)
	}
	f, err := c.FileOf(ctx, e.URI)
	if err != nil {
		return catalog.Asset{}, err
	}
	a := catalog.Asset{URI: f.path, Size: f.Size, MTime: f.mtime, ETag: f.etag, Member: e.Path, Offset: e.Offset, Length: e.Size}
	if e.Offset < 0 || e.Size < 0 || e.Offset > f.Size || e.Size > f.Size-e.Offset {
		return a, fault.WithFile(fault.New(fault.Corrupt, "sample "+e.Path, e.Offset, "%d bytes in a file of %d", e.Size, f.Size), e.URI)
	}
	if x == nil {
		if x, a.Bytes, err = c.index(ctx, f, e); err != nil {
			return a, a.Fault(err)
		}
	}
	// A raster has no part in what lies around it.
	if err := x.Validate(e.Size, c.options.MaxChunkBytes); err != nil {
		return a, a.Fault(err)
	}
	a.Index = x.Shift(e.Offset)
	return a, nil
}

// file is place for an entry that is a file of its own.
func (c *Container) file(ctx context.Context, e taco.Entry, x *chunk.Index) (catalog.Asset, error) {
	path, err := catalog.Resolve(e.URI, c.options.Roots)
	if err != nil {
		return catalog.Asset{}, err
	}
	if x != nil {
		return catalog.Asset{URI: path, Index: x}, nil
	}
	a, _, err := catalog.OpenSmall(ctx, c.options.Opener, path, source.Known{}, c.options.MaxChunkBytes)
	return a, err
}

// index reads the index of an entry, or takes it from the cache. whole are the entry's bytes where they came with it.
func (c *Container) index(ctx context.Context, f *ContainerFile, e taco.Entry) (x *chunk.Index, whole []byte, err error) {
	if blob := f.cache.get(e.Offset, e.Size); blob != nil {
		x, err := catalog.ParseIndex(blob, c.options.MaxChunkBytes)
		if err == nil && x.Validate(e.Size, c.options.MaxChunkBytes) == nil {
			return x, nil, nil
		}
	}
	// A file whose size is known is read by exact ranges: good for all of a small entry. Of another one without, headers that
	// lie near each other are one request.
	e.URI, e.Object = f.path, source.Known{ETag: f.etag}
	if e.Size <= catalog.SmallBytes {
		e.Object.Size = f.Size
	}
	a, meta, err := catalog.OpenSmall(ctx, sectionOpener{c.options.Opener, e}, f.path, source.Known{Size: e.Size}, c.options.MaxChunkBytes)
	if err != nil {
		return nil, nil, Bare(err)
	}
	if err := f.cache.put(e.Offset, e.Size, meta.Blob); err != nil {
		c.options.Logger.Warn("chunk indexes are not kept", "error", err)
	}
	return a.Index, a.Bytes, nil
}

// Alone returns an opener that opens an asset, by whatever name, as a file of its own: its offset 0 is where
// the raster begins.
func Alone(o source.Opener, a catalog.Asset) source.Opener {
	e := taco.Entry{Path: a.Member, URI: a.URI, Offset: taco.Whole, Size: taco.Whole}
	if a.Member != "" {
		e.Offset, e.Size = a.Offset, a.Length
	}
	return sectionOpener{o, e}
}

// InContainer reports whether a name is one that memberOf takes.
func InContainer(name string) bool {
	_, _, in := taco.Split(name)
	return in || strings.HasPrefix(name, subfile)
}

// MemberOf returns the asset of a path in a container, "data.tacozip::roi_1/image", or of a byte range as
// taco.VSI names it, "/vsisubfile/OFFSET_SIZE,FILE".
func MemberOf(ctx context.Context, o resources.Options, name string) (a catalog.Asset, err error) {
	if e, ok := Subfile(name); ok {
		return NewMemberContainer(o).place(ctx, e, nil)
	}
	uri, path, ok := taco.Split(name)
	if !ok {
		return a, fault.New(fault.NotFound, "file", fault.NoOffset, "no such file")
	}
	err = inContainerOf(ctx, &o, uri, func(c *Container) error {
		e, err := c.set.Resolve(ctx, path)
		if err != nil {
			return err
		}
		if e.Of != nil {
			a, err = c.chunk(ctx, e)
			return err
		}
		a, err = c.place(ctx, e, nil)
		return err
	})
	return a, err
}

// chunk makes the asset of a chunk that has a name of its own: an image of that chunk alone.
func (c *Container) chunk(ctx context.Context, e taco.Entry) (catalog.Asset, error) {
	f, err := c.FileOf(ctx, e.URI)
	if err != nil {
		return catalog.Asset{}, err
	}
	x, err := c.set.ChunkIndex(ctx, e)
	if err != nil {
		return catalog.Asset{}, err
	}
	if err := x.Validate(f.Size, c.options.MaxChunkBytes); err != nil {
		return catalog.Asset{}, fault.WithFile(fault.WithPart(err, "chunk "+e.Path, 0), e.URI)
	}
	return catalog.Asset{URI: f.path, Size: f.Size, ETag: f.etag, Index: x}, nil
}

const subfile = "/vsisubfile/"

// Subfile reads the name that taco.VSI gives a byte range of a file, "/vsisubfile/OFFSET_SIZE,FILE"; ok is false for any other name.
func Subfile(name string) (e taco.Entry, ok bool) {
	span, uri, ok := strings.Cut(strings.TrimPrefix(name, subfile), ",")
	off, size, two := strings.Cut(span, "_")
	if !ok || !two || !strings.HasPrefix(name, subfile) {
		return e, false
	}
	var err1, err2 error
	e.URI, e.Path = uri, "at "+off
	e.Offset, err1 = strconv.ParseInt(off, 10, 64)
	e.Size, err2 = strconv.ParseInt(size, 10, 64)
	return e, err1 == nil && err2 == nil && e.Offset >= 0 && e.Size >= 0
}

// Bare takes the file's name off an error, as it is to be named with the sample.
func Bare(err error) error {
	var e *fault.Error
	if !errors.As(err, &e) {
		return err
	}
	f := *e
	f.File = ""
	return &f
}

// sectionOpener opens an entry, by whatever name.
type sectionOpener struct {
	opener source.Opener
	entry  taco.Entry
}

// Open implements source.Opener.
func (s sectionOpener) Open(ctx context.Context, _ string) (source.Reader, error) {
	return taco.Section(ctx, s.opener, s.entry)
}

// newContainerFiles returns room for the files of a container, which stay until it is closed.
func newContainerFiles() *refcache.Cache[string, *ContainerFile] {
	return refcache.New[string](refcache.Options[*ContainerFile]{MaxEntries: math.MaxInt, Close: func(f *ContainerFile) error {
		if f.cache == nil {
			return nil
		}
		return f.cache.close()
	}})
}

// FileOf returns a file that rasters lie in, by the name that the container has for it.
func (c *Container) FileOf(ctx context.Context, uri string) (*ContainerFile, error) {
	l, err := c.Files.Acquire(ctx, uri, func(ctx context.Context) (*ContainerFile, error) {
		return c.look(ctx, uri)
	})
	if err != nil {
		return nil, err
	}
	return l.Value, l.Release(true)
}

// look opens a file to learn its size and time.
func (c *Container) look(ctx context.Context, uri string) (*ContainerFile, error) {
	path, err := catalog.Resolve(uri, c.options.Roots)
	if err != nil {
		return nil, err
	}
	r, err := c.options.Opener.Open(ctx, path)
	if err != nil {
		return nil, fault.WithFile(err, path)
	}
	f := &ContainerFile{path: path, Size: r.Size(), etag: source.ETag(r)}
	version := f.etag
	if t, ok := r.(source.Timed); ok {
		f.mtime = t.ModTime()
		version = cmp.Or(version, f.mtime.UTC().Format(time.RFC3339Nano))
	}
	if version != "" {
		f.cache = c.store.open(fmt.Sprintf("%s\n%d\n%s", absolute(path), f.Size, version))
	}
	return f, r.Close()
}

// absolute makes a local path one that does not depend on the current folder.
func absolute(path string) string {
	if strings.Contains(path, "://") {
		return path
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// hash sets the fingerprint: the XXH3-128 of
//
//	"chaski container 1\n", N, the number of fields, the ids of the samples,
//	and for each field its kind as one byte and, of a raster, the size of each sample's in bytes, 2^64-1
//	where it is a file of its own or missing, or the values of what rides along
//
// as package catalog writes numbers, records and values.
func (c *Container) hash(ctx context.Context) error {
	var h digester
	h.text("chaski container 1\n")
	h.number(uint64(len(c.rows)))
	h.number(uint64(len(c.fields)))
	err := c.ScanIDs(ctx, func(_ int64, id string) error {
		h.record(id)
		return nil
	})
	if err != nil {
		return err
	}
	for i := range c.fields {
		m := &c.fields[i]
		h.text(string(rune(m.kind)))
		for row, at := range m.rows {
			switch {
			case at < 0:
				h.number(math.MaxUint64)
			case m.kind == catalog.Raster:
				e, err := c.set.EntryAt(ctx, m.level, int(at))
				if err != nil {
					return err
				}
				h.number(uint64(e.Size)) // Whole is 2^64-1
			case m.value == nil: // paths as texts
				e, err := c.set.EntryAt(ctx, m.level, int(at))
				if err != nil {
					return err
				}
				h.record(e.Path)
			default:
				h.value(m.kind, valueOf(m.value, int(at)))
			}
			if row%4096 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	c.print = h.sum()
	return nil
}

// digester hashes numbers and texts. A Write for each would be slow.
type digester struct {
	h   xxh3.Hasher
	buf []byte
}

func (d *digester) text(s string) {
	d.buf = append(d.buf, s...)
	d.flush(1 << 13)
}

func (d *digester) number(n uint64) {
	d.buf = binary.LittleEndian.AppendUint64(d.buf, n)
	d.flush(1 << 13)
}

func (d *digester) record(s string) {
	d.number(uint64(len(s)))
	d.text(s)
}

func (d *digester) value(k catalog.Kind, v catalog.Value) {
	switch {
	case v.Null:
		d.number(math.MaxUint64)
	case k == catalog.Int:
		d.number(8)
		d.number(uint64(v.Int))
	case k == catalog.Float:
		d.number(8)
		d.number(math.Float64bits(v.Float))
	default:
		d.record(v.Text)
	}
}

func (d *digester) flush(full int) {
	if len(d.buf) >= full {
		_, _ = d.h.Write(d.buf)
		d.buf = d.buf[:0]
	}
}

func (d *digester) sum() string {
	d.flush(0)
	b := d.h.Sum128().Bytes()
	return hex.EncodeToString(b[:])
}

// selectSamples finds the samples that the subset leaves, in the order of the rows.
func (c *Container) selectSamples(ctx context.Context) error {
	visible, err := c.set.Visible(ctx, 0)
	if err != nil {
		return err
	}
	if len(visible) > math.MaxInt32 {
		return fault.New(fault.Limit, "level0", fault.NoOffset, "%d rows", len(visible))
	}
	c.rows = make([]int32, len(visible))
	for i, row := range visible {
		c.rows[i] = int32(row)
	}
	if len(c.rows) == 0 {
		c.selected = true
		return nil
	}
	if c.level0, err = c.set.Level(ctx, 0); err != nil {
		return err
	}
	s := &c.src.Subset
	for i := range s.Where {
		if err := c.where(ctx, &s.Where[i]); err != nil {
			return fmt.Errorf("%s: %w", s.Where[i].Called(), err)
		}
	}
	if s.Split != nil {
		if err := c.narrow(ctx, func(sel *selector) error { return sel.split(ctx, s.Split, s.Use) }); err != nil {
			return fmt.Errorf("split: %w", err)
		}
	}
	c.selected = true
	return nil
}

// narrow drops the samples that a selection drops.
func (c *Container) narrow(ctx context.Context, by func(*selector) error) error {
	sel := selector{table: c}
	if err := by(&sel); err != nil {
		return err
	}
	keep, err := sel.rows()
	if err != nil || keep == nil {
		return err
	}
	rows := make([]int32, len(keep))
	for i, k := range keep {
		rows[i] = c.rows[k]
	}
	c.rows = rows
	c.follow()
	return ctx.Err()
}

// follow drops the rows of data whose samples were dropped.
func (c *Container) follow() {
	if c.data == nil {
		return
	}
	var keep []int
	var at []int32
	for i, row := range c.at {
		if _, ok := slices.BinarySearch(c.rows, row); ok {
			keep, at = append(keep, i), append(at, row)
		}
	}
	c.data, c.at = c.data.Take(keep), at
}

// intersect keeps the samples whose rows are among some, which ascend.
func (c *Container) intersect(rows []int) {
	next := 0
	c.rows = slices.DeleteFunc(c.rows, func(row int32) bool {
		for next < len(rows) && rows[next] < int(row) {
			next++
		}
		return next == len(rows) || rows[next] != int(row)
	})
	c.follow()
}
