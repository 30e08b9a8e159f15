package containers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/geometries"
	"github.com/chaski-eo/chaski/internal/digest"
	"github.com/chaski-eo/chaski/internal/keylock"
	"github.com/chaski-eo/chaski/internal/lru"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/taco"
)

// Set is one or several open containers, one after the other. It is safe for concurrent use.
type Set struct{ *taco.Dataset }

// Open opens a container. base is the directory of the source files of an index, "" if they are beside it.
func Open(ctx context.Context, o source.Opener, path, base string) (Set, error) {
	set, err := taco.Open(ctx, o, []string{path}, taco.Options{BasePath: base})
	return Set{set}, err
}

// Container is the dataset of one or several TACO or Tortilla files: the samples of level 0 that
// meet the conditions and the split of its source. It is safe for concurrent use.
type Container struct {
	set      Set
	src      *spec.Source
	options  resources.Options
	opener   source.Opener // refuses paths outside of the roots
	level0   *tables.Table
	rows     []int32         // the row of level 0 of each sample, ascending
	matches  store.Selection // the rows of each level that meet bbox and datetime; nil for all
	base     store.Selection // the rows of each level that the groups of concat left; nil without
	selected bool            // the conditions and the split are applied
	keep     bool            // decoded geometries stay in memory, because more queries will follow
	fields   []fieldPlace
	assets   *lru.Cache[assetKey, catalog.Asset]
	print    string
	files    keylock.Values[string, catalog.Asset] // by the URI that the container has for them: see fileOf
}

// kind is the kind of the paths of containers.
type kind struct{ taco.Kind }

var _ = store.Register(kind{})

// assetKey identifies the asset of one field in one sample.
type assetKey struct {
	field int
	row   int64
}

// fieldPlace says where the container has the values or rasters of one field.
type fieldPlace struct {
	name   string
	kind   catalog.Kind
	level  int
	rows   []int32        // the row of that level for each sample; -1 if the sample has none. See Container.row
	value  *column.Column // the values of a metadata column; nil for rasters and their paths
	header *taco.Headers  // nil if the headers of the files are read
	ground *ground        // the columns of the places of rasters that have a header there; nil without
	files  *fileSequence  // in place of rows, for rasters that are several files; nil for others
	number int            // of the file in files
	axes   chunk.Axes     // as catalog.Source.Axes
}

// OpenDataset implements rows.Dataset: it opens the containers of a source and applies the source's conditions and
// split.
func (kind) OpenDataset(ctx context.Context, src *spec.Source, fields []spec.Field, o resources.Options) (*rows.Table,
	error) {
	container := &Container{
		src: src, options: o, opener: o.Opener, assets: lru.New[assetKey, catalog.Asset](o.CacheBytes),
	}
	set, err := taco.Open(ctx, container.opener, append([]string{src.Source}, src.Parts...), taco.Options{
		BasePath: src.BasePath, Mode: columnsMode(src), Filters: fileFilters(src), Chosen: src.Joins(),
		Warn: func(m string) { o.Logger.Warn(m, "source", src.Source) },
	})
	if err != nil {
		return nil, cmp.Or(noneOf(ctx, container.opener, src, err), fault.WithFile(err, src.Source))
	}
	container.set = Set{set}
	if err := container.open(ctx, fields); err != nil {
		return nil, errors.Join(fault.WithFile(err, src.Source), container.Close())
	}
	table := rows.New(container)
	table.Selected = container.selected
	return table, nil
}

// noneOf returns the error for a list of paths if err, the error of taco.Open, is about one that is not a container,
// such as a raster or a directory of rasters. It returns nil for all other errors.
func noneOf(ctx context.Context, o source.Opener, src *spec.Source, err error) error {
	cause, ok := errors.AsType[*fault.Error](err)
	if len(src.Parts) == 0 || !ok || cause.Kind != fault.Unsupported {
		return nil
	}
	if found, err := store.Of(ctx, o, cause.File); err == nil && found == store.Kind(kind{}) {
		return nil
	}
	return fault.WithFile(fault.New(fault.Unsupported, "dataset", "%s", cmp.Or(magic.Refusal(cause.File),
		"is not a container: a list of paths names containers; several directories or tables are a mixture of "+
			"sources, and files are named by a directory, a glob or a table")), cause.File)
}

func (c *Container) open(ctx context.Context, fields []spec.Field) error {
	sel, err := c.selector(ctx)
	switch {
	case err != nil:
		return err
	case c.set.Levels() == 0: // fileFilters ruled out all files
		return fault.New(fault.NotFound, "dataset", "none of its files has samples that meet bbox and datetime")
	case sel == nil:
		return fault.New(fault.NotFound, "dataset", "no samples")
	case len(c.rows) == 0:
		return sel.NoneLeft(c.src)
	}
	for _, field := range fields {
		member, err := c.member(ctx, field)
		if err != nil {
			return rows.InPart(err, fmt.Sprintf("field %q", field.Name))
		}
		if field.Traits().Paths && member.kind == catalog.Raster {
			member.kind = catalog.Text // Value returns the path of the sample
		}
		c.fields = append(c.fields, member)
	}
	c.addSteps()
	return c.hash(ctx)
}

// addSteps adds a field for each step of the fields that are sequences, behind all others.
func (c *Container) addSteps() {
	for _, member := range slices.Clone(c.fields) {
		if member.files == nil {
			continue
		}
		for _, k := range member.files.picks {
			member.number = k
			member.files.fields = append(member.files.fields, len(c.fields))
			c.fields = append(c.fields, member)
		}
	}
}

// Len implements rows.Store, as the methods after it do: the rows are the samples as they are selected now.
func (c *Container) Len() int64                  { return int64(len(c.rows)) }
func (c *Container) Fields() int                 { return len(c.fields) }
func (c *Container) Kind(field int) catalog.Kind { return c.fields[field].kind }
func (c *Container) Fingerprint() string         { return c.print }

// Data returns level 0, for queries.
func (c *Container) Data(context.Context) (*tables.Table, error) {
	return c.level0.Take(num.As[int](c.rows)), nil
}

// Steps returns the fields with the steps of a sequence, nil of another field.
func (c *Container) Steps(field int) []int {
	if files := c.fields[field].files; files != nil {
		return files.fields
	}
	return nil
}

// Padding reports whether a sample has no file for a step of a sequence, and some for others.
func (c *Container) Padding(field, step int, row int64) bool {
	return c.fields[field].files.padding(step, c.rows[row])
}

// row returns the row of the member's level for a sample, or -1 if it has none.
func (c *Container) row(m *fieldPlace, sample int64) int32 {
	if m.files != nil {
		return m.files.row(c.rows[sample], m.number)
	}
	return m.rows[sample]
}

// BandNames returns the names that the collection gives the bands of its rasters, or their common
// names. It returns nil if the collection describes no sensor.
func (c *Container) BandNames() []string {
	// A collection that cannot be read here has no names. Names only label bands, so it must
	// not fail the run.
	sensor, ok, err := c.set.Sensor()
	if err != nil || !ok {
		return nil
	}
	var out []string
	for _, b := range sensor.Bands {
		out = append(out, cmp.Or(b.Name, b.CommonName))
	}
	return out
}

// Close closes the containers.
func (c *Container) Close() error {
	return c.set.Close()
}

// ID returns the id of a sample in level 0.
func (c *Container) ID(ctx context.Context, row int64) (string, error) {
	ids, err := c.set.IDs(ctx, 0)
	if err != nil {
		return "", err
	}
	return ids.Str(int(c.rows[row])), nil
}

// Value returns for rasters, or their paths as strings, the path of the raster in the container.
func (c *Container) Value(ctx context.Context, field int, row int64) (catalog.Value, error) {
	member := &c.fields[field]
	entry := c.row(member, row)
	switch {
	case entry < 0:
		return catalog.Value{Null: true}, nil
	case member.value == nil:
		e, err := c.set.Entry(ctx, member.level, int(entry))
		return catalog.Value{Text: []byte(e.Path)}, err
	}
	return member.value.Cell(ctx, int64(entry))
}

// Column returns a column of level 0 or, of the name "PATH@COLUMN", of the rows that a path leads to. Samples without
// such a row have null.
func (c *Container) Column(ctx context.Context, name string) (*rows.Column, error) {
	member, err := c.valueMember(ctx, name)
	if err == nil && member.kind.IsList() {
		err = fault.New(fault.Unsupported, "column "+name, "holds lists")
	}
	if err != nil {
		return nil, fault.WithFile(err, c.src.Source)
	}
	return column.Pick(member.value, member.rows), nil
}

// Centroids reads a column of centroids of level 0: points in well-known
// binary, which TACO has in degrees of longitude and latitude. Null is NaN.
func (c *Container) Centroids(ctx context.Context, visit func(row int64, lon, lat float64) error) error {
	place := slices.IndexFunc(centroidColumns, func(name string) bool { return c.level0.Index(name) >= 0 })
	if place < 0 {
		return fault.WithFile(fault.New(fault.NotFound, "dataset", "has neither columns of bounds nor one of "+
			"centroids (%s)", strings.Join(centroidColumns, ", ")), c.src.Source)
	}
	name := centroidColumns[place]
	values, err := c.level0.Column(ctx, name)
	for row := 0; err == nil && row < len(c.rows); row++ {
		var lon, lat float64
		if lon, lat, err = geometries.Centroid(values, int(c.rows[row])); err != nil {
			err = fault.New(fault.KindOf(err), fmt.Sprintf("column %s of row %d", name, row), "%v", err)
			break
		}
		if err = visit(int64(row), lon, lat); err == nil {
			err = ctx.Err()
		}
	}
	return fault.WithFile(err, c.src.Source)
}

// centroidColumns are the columns in which containers have centroids. The first that exists counts.
var centroidColumns = []string{"stac:centroid", "istac:centroid", "spatial:centroid"}

func (c *Container) ScanIDs(ctx context.Context, visit func(row int64, id string) error) error {
	ids, err := c.set.IDs(ctx, 0)
	if err != nil {
		return err
	}
	for sample, row := range c.rows {
		if err := visit(int64(sample), ids.Str(int(row))); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (c *Container) Asset(ctx context.Context, field int, row int64) (catalog.Asset, error) {
	key := assetKey{field, row}
	if a, ok := c.assets.Get(key); ok {
		return a, nil
	}
	asset, err := c.asset(ctx, &c.fields[field], row)
	if err != nil {
		return catalog.Asset{}, fault.WithFile(err, c.src.Source)
	}
	c.assets.Add(key, asset, assetCost(asset))
	return asset, nil
}

// assetCost estimates the memory of an asset in bytes.
func assetCost(a catalog.Asset) int64 {
	// A range is two int64, 16 bytes. 512 bytes cover the structs of an asset and its index, 256
	// the struct of a mask.
	n := 512 + int64(cap(a.Index.Ranges))*16 + int64(len(a.URI)+len(a.Member)+cap(a.Bytes))
	if m := a.Index.Mask; m != nil {
		n += 256 + int64(cap(m.Ranges))*16
	}
	return n
}

// errNoRaster is returned for the asset of a field that holds values.
var errNoRaster = errors.New("loader: the field is not a raster")

// asset makes the asset of one sample. A sample without a raster for the field is fault.NotFound.
func (c *Container) asset(ctx context.Context, m *fieldPlace, row int64) (catalog.Asset, error) {
	if m.kind != catalog.Raster {
		return catalog.Asset{}, errNoRaster
	}
	entry := c.row(m, row)
	if entry < 0 {
		sample, err := c.ID(ctx, row)
		if err == nil && m.files != nil {
			err = fault.New(fault.NotFound, "sample "+sample, "has no files for the field %q that are numbered from 0 "+
				"on, and no more than the container declares", m.name)
		} else if err == nil {
			err = fault.New(fault.NotFound, "sample "+sample, "has nothing for the field %q", m.name)
		}
		return catalog.Asset{}, err
	}
	found, err := c.set.Entry(ctx, m.level, int(entry))
	if err != nil {
		return catalog.Asset{}, err
	}
	index, names, err := m.header.Of(int(entry), c.options.MaxChunkBytes)
	if err != nil {
		return catalog.Asset{}, rows.InPart(err, "sample "+found.Path)
	}
	asset, err := c.place(ctx, found, index, m.axes)
	if err == nil && index != nil { // the header, which has both too, is not read
		placed := int(entry)
		if m.ground != nil && m.ground.samples {
			placed = int(c.rows[row])
		}
		asset.Place, asset.Names = m.ground.of(placed, index), names
	}
	return asset, err
}

// Extent returns what returns the place of a raster in its file, if it is read whole; nil of values.
func (c *Container) Extent(field int) func(ctx context.Context, row int64) (source.Extent, bool) {
	m := &c.fields[field]
	if m.kind != catalog.Raster {
		return nil
	}
	return func(ctx context.Context, row int64) (source.Extent, bool) { return c.extent(ctx, m, row) }
}

func (c *Container) extent(ctx context.Context, m *fieldPlace, row int64) (at source.Extent, ok bool) {
	entry := c.row(m, row)
	if entry < 0 {
		return at, false
	}
	found, err := c.set.Entry(ctx, m.level, int(entry))
	if err != nil || found.Folder || found.Offset == store.Whole || found.Size > catalog.SmallBytes {
		return at, false
	}
	file, err := c.fileOf(ctx, found.URI)
	if err != nil {
		return at, false
	}
	return source.Extent{URI: file.URI, Range: source.Range{Off: found.Offset, Len: found.Size}}, true
}

// place makes the asset of an entry. x is its chunk index with offsets from the start of the
// raster, or nil if the index has to be read, with these axes.
func (c *Container) place(ctx context.Context, e store.Entry, x *chunk.Index, axes chunk.Axes) (catalog.Asset, error) {
	if e.Folder {
		return catalog.Asset{}, fault.New(fault.Unsupported, "sample "+e.Path, "is a folder, not a raster")
	}
	if e.Offset == store.Whole {
		return c.file(ctx, e, x, axes)
	}
	asset, err := c.fileOf(ctx, e.URI)
	if err != nil {
		return asset, err
	}
	asset.Member, asset.Offset, asset.Length = e.Path, e.Offset, e.Size
	if !source.Fits(e.Offset, e.Size, asset.Size) {
		return asset, fault.WithFile(fault.At(fault.Corrupt, "sample "+e.Path, e.Offset,
			"%d bytes in a file of %d", e.Size, asset.Size), e.URI)
	}
	if x == nil {
		read, err := c.index(ctx, asset.Known(), e, asset.URI, axes)
		if err != nil {
			return asset, asset.Fault(err)
		}
		x, asset.Bytes, asset.Place = read.Index, read.Bytes, read.Place
		asset.Names, asset.Axes = read.Names, read.Axes
	}
	// The index must stay within the raster's own bytes. Otherwise a forged raster would show its
	// neighbours in the container.
	if err := x.Validate(e.Size, c.options.MaxChunkBytes); err != nil {
		return asset, asset.Fault(err)
	}
	asset.Index = x.Shift(e.Offset)
	return asset, nil
}

// file makes the asset of an entry that is a whole file. x is as in place.
func (c *Container) file(ctx context.Context, e store.Entry, x *chunk.Index, axes chunk.Axes) (catalog.Asset, error) {
	path, err := c.options.Resolve(e.URI)
	if err != nil {
		return catalog.Asset{}, err
	}
	if x != nil {
		return catalog.Asset{URI: path, Index: x}, catalog.CheckRaster(ctx, c.options.Opener, path, 0)
	}
	return catalog.OpenSmall(ctx, c.options.Opener, path, source.Known{}, axes, c.options.MaxChunkBytes)
}

// index reads the header of an entry. The asset has the entry's bytes if they were read with the header.
func (c *Container) index(ctx context.Context, file source.Known, e store.Entry, uri string, axes chunk.Axes) (
	catalog.Asset, error) {
	// An object of known size is read by exact ranges, which suits an entry that is read whole in
	// one request. For larger entries the size is left out, so headers near each other in the
	// file are fetched in one request.
	if e.URI, e.Object = uri, file; e.Size > catalog.SmallBytes {
		e.Object.Size = 0
	}
	asset, err := catalog.OpenSmall(ctx, e.Alone(c.options.Opener), uri, source.Known{Size: e.Size},
		axes, c.options.MaxChunkBytes)
	return asset, rows.Bare(err)
}

// chunk makes the asset of one chunk of a streaming TACO, "img1/lrf::2": a raster of that chunk
// alone.
func (c *Container) chunk(ctx context.Context, e store.Entry) (catalog.Asset, error) {
	file, err := c.fileOf(ctx, e.URI)
	if err != nil {
		return catalog.Asset{}, err
	}
	index, err := c.set.ChunkIndex(ctx, e)
	if err != nil {
		return catalog.Asset{}, err
	}
	if err := index.Validate(file.Size, c.options.MaxChunkBytes); err != nil {
		return catalog.Asset{}, fault.WithFile(fault.WithPart(err, "chunk "+e.Path, 0), e.URI)
	}
	return catalog.Asset{URI: file.URI, Size: file.Size, ETag: file.ETag, Index: index}, nil
}

// fileOf returns the file that the container names uri, without an index. The first call opens it, to learn its size
// and version.
func (c *Container) fileOf(ctx context.Context, uri string) (catalog.Asset, error) {
	return c.files.Get(ctx, uri, func() (a catalog.Asset, err error) {
		if a.URI, err = c.options.Resolve(uri); err != nil {
			return a, fault.WithFile(err, uri)
		}
		file, err := c.options.Opener.Open(ctx, a.URI)
		if err != nil {
			return a, fault.WithFile(err, a.URI)
		}
		a.Size, a.ETag, a.MTime = file.Size(), source.ETag(file), source.ModTime(file)
		return a, file.Close()
	})
}

// hash sets the fingerprint: the XXH3-128 of
//
//	"chaski container 1\n", the number of samples, the number of fields, the ids of the samples;
//	for each field its kind as one byte, and for each sample
//	  the bytes of the raster (2^64-1 if it is a file of its own or missing),
//	  an empty record (a field of paths, which follow from the ids), or the value (a metadata column)
//
// Package catalog has the same forms of numbers, records and values. The path and the number of the
// container's files are left out, so a state resumes after they were moved or merged.
func (c *Container) hash(ctx context.Context) error {
	hasher := digest.New()
	_, _ = hasher.WriteString("chaski container 1\n")
	hasher.Number(uint64(len(c.rows)))
	hasher.Number(uint64(len(c.fields)))
	err := c.ScanIDs(ctx, func(_ int64, id string) error {
		hasher.Record([]byte(id))
		return nil
	})
	if err != nil {
		return err
	}
	for i := range c.fields {
		member := &c.fields[i]
		_, _ = hasher.WriteString(string(rune(member.kind)))
		for row := range c.rows {
			place := int(c.row(member, int64(row)))
			switch {
			case place < 0:
				hasher.Number(math.MaxUint64)
			case member.value != nil:
				value, err := member.value.Cell(ctx, int64(place))
				if err != nil {
					return err
				}
				value.Hash(hasher, member.kind)
			case member.kind != catalog.Raster: // paths as strings
				hasher.Record(nil)
			default:
				entry, err := c.set.EntryAt(ctx, member.level, place)
				if err != nil {
					return err
				}
				hasher.Number(uint64(entry.Size)) // store.Whole, -1, becomes 2^64-1
			}
			if row%4096 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	c.print = hasher.Hex()
	return nil
}

// selectSamples sets rows as selector does. It returns the rows of level 0 that remain or, after a condition with a
// SELECT, its result, and the row of level 0 for each. Without samples the table has columns too, because callers show
// them and queries name them.
func (c *Container) selectSamples(ctx context.Context) (*tables.Table, []int32, error) {
	sel, err := c.selector(ctx)
	if err != nil {
		return nil, nil, err
	}
	if sel == nil {
		return c.level0.Take(nil), nil, nil
	}
	return sel.Left(ctx)
}

// inUse is a container that stays open when its table is closed.
type inUse struct{ *Container }

func (inUse) Close() error { return nil }

// selector applies the conditions and the split, and sets rows to the samples that meet them, in the order of level 0.
// It returns nil for a container without samples.
func (c *Container) selector(ctx context.Context) (*rows.Selector, error) {
	defer func() { c.selected = true }()
	var err error
	if c.level0, err = c.set.Level(ctx, 0); err != nil {
		return nil, err
	}
	visible, err := c.set.Visible(ctx, 0)
	if err != nil || len(visible) == 0 {
		return nil, err
	}
	// While conditions are applied, the samples are all rows of level 0, padding too. Rows are int32, because a run
	// keeps one per sample and field; int would take twice the memory.
	count := c.level0.Len()
	c.rows = num.Range[int32](0, count)
	table := rows.New(inUse{c})
	if err := rows.JoinTables(ctx, table, &c.src.Subset, c.options); err != nil {
		return nil, errors.Join(err, table.Close())
	}
	sel := rows.NewSelector(table, c, c.options)
	if len(visible) < count {
		sel.Meet(rows.Int32s(visible))
	}
	if err := cmp.Or(sel.Apply(ctx, &c.src.Subset), table.Close()); err != nil {
		return nil, err
	}
	if sel.Keep != nil {
		c.rows = slices.DeleteFunc(c.rows, func(row int32) bool { return !sel.Keep[row] })
	}
	return sel, nil
}
