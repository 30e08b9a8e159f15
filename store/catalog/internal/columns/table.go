package columns

import (
	"context"
	"errors"
	"math"
	"slices"
	"sort"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/paged"
	"github.com/chaski-eo/chaski/format/tables/parquet"
	"github.com/chaski-eo/chaski/format/tables/texts"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog/internal/layout"
	"github.com/chaski-eo/chaski/store/catalog/internal/listing"
)

// Table holds the columns that the fields of a dataset are made of. They come from Parquet files whose rows
// follow each other, or are in memory, from a CSV file or STAC items.
type Table struct {
	Files  []*File
	begins []int64 // the first row of each file, and at the end the number of all rows

	memory  *tables.Table           // in memory, the columns that were wanted; nil of Parquet files
	records *records                // of TFRecord files
	sums    map[string]*column.Sums // of the columns of a catalog
	names   []string                // of all columns of the file
	part    string                  // of the file that names the columns, for errors
}

// File is a Parquet file of a table.
type File struct {
	*paged.File
	Name string // "" if it is the whole table

	reader source.Reader
}

// smallFile is the size in bytes of the largest remote Parquet file that is read whole when it is opened, a catalog of
// about 25,000 rasters. Otherwise the rest of the file, or the footer, the columns of the fingerprint and the pages of
// the first rows, would wait for a round trip each. Larger files are opened 50 ms later at 20 MB/s.
const smallFile = 1 << 20

// WithSmallFile returns the context in which to open the reader of OpenParquet.
func WithSmallFile(ctx context.Context, cacheBytes int64) context.Context {
	return source.WithWhole(ctx, min(smallFile, cacheBytes))
}

// OpenParquet opens a Parquet file. Its decoded pages take at most about cacheBytes.
func OpenParquet(ctx context.Context, r source.Reader, cacheBytes int64) (*Table, error) {
	file, err := openFile(ctx, r, paged.NewCache(cacheBytes).KeepLarge(budget.Of(ctx)), 0)
	if err != nil {
		return nil, err
	}
	table := tableOf([]*File{file})
	table.sums, err = sumsOf(file)
	return table, err
}

func openFile(ctx context.Context, r source.Reader, cache *paged.Cache, number int) (*File, error) {
	file, err := parquet.Open(ctx, r)
	if err != nil {
		return nil, err
	}
	made := &File{File: paged.New(file, cache, number, 0), reader: r}
	_, made.Far = r.(source.Gapped)
	return made, nil
}

// openShards is how many shards are opened at the same time: each takes one or two requests.
const openShards = 16

// OpenShards opens Parquet files with the same columns by their names, which it uses in errors. Their decoded pages
// together take at most about cacheBytes. No file stays open.
func OpenShards(ctx context.Context, o source.Opener, names []string, cacheBytes int64) (*Table, error) {
	if len(names) > listing.MaxShards {
		return nil, fault.New(fault.Limit, "dataset", "%d Parquet files, at most %d", len(names), listing.MaxShards)
	}
	files := make([]*File, len(names))
	cache := paged.NewCache(cacheBytes).KeepLarge(budget.Of(ctx))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(openShards)
	for i, name := range names {
		group.Go(func() error {
			file, err := o.Open(ctx, name)
			if err != nil {
				return fault.WithFile(err, name)
			}
			known := source.Known{Size: file.Size(), ETag: source.ETag(file)}
			// Closed again, because thousands of shards would take all descriptors of the process.
			if err := file.Close(); err != nil {
				return err
			}
			shard, err := openFile(ctx, &source.Reopened{Opener: o, URI: name, Known: known}, cache, i)
			if err == nil {
				shard.Name, shard.Far, files[i] = name, source.IsRemote(name), shard
				err = budget.Grow(ctx, int64(shard.Cost()))
			}
			return fault.WithFile(err, name)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return tableOf(files), nil
}

func tableOf(files []*File) *Table {
	t := &Table{Files: files, begins: make([]int64, len(files)+1)}
	for i, f := range files {
		t.begins[i+1] = t.begins[i] + f.Rows
	}
	for i := range files[0].Columns {
		t.names = append(t.names, files[0].Columns[i].Name)
	}
	return t
}

// Rows returns the number of rows.
func (t *Table) Rows() int64 { return t.begins[len(t.begins)-1] }

// Names returns the names of all columns. The caller must not change them.
func (t *Table) Names() []string { return t.names }

// Meta returns an entry of the metadata of the first Parquet file, or "".
func (t *Table) Meta(key string) string {
	if t.Files == nil {
		return ""
	}
	return t.Files[0].Meta[key]
}

// Has reports whether there is a column with a name, which can be read and is stored.
func (t *Table) Has(name string) bool {
	if name == column.RowColumn && !slices.Contains(t.names, name) {
		return false
	}
	_, err := t.Column(name)
	return err == nil
}

// IsCatalog reports whether a Parquet file has the blobs of its assets.
func (t *Table) IsCatalog() bool {
	return t.Meta(layout.VersionKey) != "" ||
		t.Has(layout.URI) && (t.Has(layout.Index) || t.Has(layout.Header))
}

// Close closes the file of a table that is one Parquet file. Others are not open.
func (t *Table) Close() error {
	if len(t.Files) == 1 {
		return t.Files[0].reader.Close()
	}
	return nil
}

// FileOf returns the name of the file that holds a row, "" if it is the whole table, and the number of the row in it.
func (t *Table) FileOf(row int64) (name string, in int64) {
	if t.memory != nil {
		return "", row
	}
	file, in := t.find(row)
	if t.records != nil {
		return t.records.files[file].name, in
	}
	return t.Files[file].Name, in
}

// find returns the number of the file that holds a row, and the number of the row in it.
func (t *Table) find(row int64) (file int, in int64) {
	file = sort.Search(len(t.begins)-2, func(i int) bool { return t.begins[i+1] > row })
	return file, row - t.begins[file]
}

// IsHeavy reports whether a page of so many bytes is heavy for the cache of the table's files.
func (t *Table) IsHeavy(pageBytes int64) bool {
	return len(t.Files) > 0 && t.Files[0].Cache.Heavy(pageBytes)
}

// Column returns the column with a name, whose values are no lists. It has the same kind in all files. The error for a
// missing one lists the columns.
func (t *Table) Column(name string) (*Column, error) {
	column, err := t.AnyColumn(name)
	if err != nil {
		return nil, err
	}
	return NoLists(column, name)
}

// NoLists returns the column, or an error with its name if its values are lists.
func NoLists(c *Column, name string) (*Column, error) {
	if c.Kind.IsList() {
		return nil, fault.New(fault.Unsupported, "column "+name, "holds lists")
	}
	return c, nil
}

// AnyColumn is Column with columns of lists.
func (t *Table) AnyColumn(name string) (*Column, error) {
	if name == column.RowColumn && !slices.Contains(t.names, name) {
		return column.Numbers(t.Rows()), nil
	}
	if t.memory != nil {
		return t.heldColumn(name)
	}
	if t.records != nil {
		if !slices.Contains(t.names, name) {
			return nil, t.noColumn(name, "")
		}
		return t.records.column(name)
	}
	stored, err := t.Stored(name)
	if err != nil {
		return nil, err
	}
	return stored.Column, nil
}

// Stored returns a column of Parquet files.
func (t *Table) Stored(name string) (*Stored, error) { return t.stored(name, false) }

// Arrays returns a column of Parquet files whose cells are lists, perhaps of lists: see Stored.Samples.
func (t *Table) Arrays(name string) (*Stored, error) { return t.stored(name, true) }

// Samples returns the numbers in the lists of a row, each of them of size bytes, and how long these lists are, from the
// outermost one on.
func (c *Stored) Samples(ctx context.Context, row int64, size int) (data []byte, shape []int, null bool, err error) {
	leaf, in := c.place(row)
	data, shape, null, err = leaf.samplesAt(ctx, in, size)
	return data, shape, null, fault.WithFile(err, leaf.Name)
}

// Depth returns how many lists lie around a value.
func (c *Stored) Depth() int { return c.leaves[0].Columns[c.leaves[0].number].Depth() }

// Type returns the type of the values of a row, as files may differ.
func (c *Stored) Type(row int64) tables.Type {
	leaf, _ := c.place(row)
	return tables.LeafType(&leaf.Columns[leaf.number])
}

func (t *Table) stored(name string, nested bool) (*Stored, error) {
	parts, leaves := make([]*Column, len(t.Files)), make([]leaf, len(t.Files)) // by file
	for i, shard := range t.Files {
		var err error
		leaves[i].nested = nested
		parts[i], err = leaves[i].describe(shard, name)
		if err == nil && (parts[i].Kind != parts[0].Kind || parts[i].Unit != parts[0].Unit) {
			err = fault.New(fault.Unsupported, "column "+name, "holds %ss, in %s it holds %ss",
				parts[i].Kind, t.Files[0].Name, parts[0].Kind)
		}
		if err != nil {
			return nil, fault.WithFile(err, shard.Name)
		}
	}
	out := parts[0]
	if len(parts) > 1 {
		out = column.Concat(parts)
		out.Bytes, out.Opaque = parts[0].Bytes, parts[0].Opaque
	}
	out.Sums = t.sums[name]
	return &Stored{Column: out, table: t, leaves: leaves}, nil
}

// Elements returns the type of the numbers in the lists of a column that is not of Parquet files.
func (t *Table) Elements(name string) (tables.Type, error) {
	if t.memory != nil {
		values, err := t.memory.Column(context.Background(), name)
		if err != nil {
			return tables.Type{}, err
		}
		return *values.Type().Elem, nil
	}
	_, elem := t.records.features[name].elem()
	return elem, nil
}

// heldColumn returns a column in memory.
func (t *Table) heldColumn(name string) (*Column, error) {
	if t.memory.Index(name) >= 0 {
		values, err := t.memory.Column(context.Background(), name)
		if err != nil {
			return nil, err
		}
		return values.Column(name)
	}
	hint, found := "", slices.Contains(t.names, name)
	if len(t.names) == 1 && strings.ContainsAny(t.names[0], "|,;\t") {
		hint = ": columns must be separated by commas, semicolons or tabs, in a .tsv file by tabs"
	} else if t.part == "items" && (found || len(t.names) == 0) {
		hint = ": of STAC items name an asset as the column, or make a catalog of them (chaski.stac); labels, such " +
			"as GeoJSON and COCO, are the path of a Vector"
	}
	if found {
		return nil, fault.New(fault.Unsupported, "column "+name, "holds objects, or lists of lists or objects%s", hint)
	}
	return nil, t.noColumn(name, hint)
}

// noColumn returns the error for a column that does not exist.
func (t *Table) noColumn(name, hint string) error {
	return fault.New(fault.NotFound, t.part, "no column %q; there are %s%s", name,
		fault.Near(name, t.names, fault.Itself), hint)
}

// OfRecords reports whether the rows come from TFRecord files.
func (t *Table) OfRecords() bool { return t.records != nil }

// Fields returns the names of the columns of Parquet files, where a struct is one column, and of features.
func (t *Table) Fields() (names []string) {
	if t.Files == nil {
		return t.names
	}
	for i := range t.Files[0].Fields {
		names = append(names, t.Files[0].Fields[i].Name)
	}
	return names
}

// Sizes returns how many bytes each record of TFRecord files has, nil of other tables.
func (t *Table) Sizes() (sizes []int64) {
	if t.records != nil {
		for _, extent := range t.records.at {
			sizes = append(sizes, extent.Len)
		}
	}
	return sizes
}

// Data returns the table for queries, whose columns are read when they are first used: of Parquet files all of them
// with their types, of others those that were wanted. Errors name files other than the whole table.
func (t *Table) Data(ctx context.Context) (*tables.Table, error) {
	if t.memory != nil {
		if t.Rows() > math.MaxInt32 {
			return nil, fault.New(fault.Limit, "table", "%d rows", t.Rows())
		}
		return t.memory, nil
	}
	if t.records != nil {
		return t.records.data(t.names)
	}
	parts := make([]*tables.Table, len(t.Files))
	for i, file := range t.Files {
		var err error
		if parts[i], err = tables.Read(ctx, file.reader, 0, file.reader.Size(), tables.Options{}); err != nil {
			return nil, fault.WithFile(err, file.Name)
		}
	}
	if len(parts) == 1 && t.Files[0].Name == "" {
		return parts[0], nil
	}
	return tables.Concat(parts, column.Mixed)
}

// CutRest cuts the name of a text and of its last column, which has the rest of each line: FILE.csv::NAME+. rest is
// empty of other names.
func CutRest(name string) (file, rest string) {
	file, rest, _ = strings.Cut(name, source.Separator)
	if class := magic.Named(source.Name(file)).Class; class == magic.CSV && strings.HasSuffix(rest, texts.ToEnd) {
		return file, rest
	}
	return name, ""
}

// Open opens a Parquet or CSV file, or STAC items, with all of its columns: see OpenParquet and OpenText. A name
// without the extension of a table is fault.Unsupported.
func Open(ctx context.Context, o source.Opener, name string, cacheBytes int64, raw ...string) (*Table, error) {
	name, rest := CutRest(name)
	class := magic.Named(source.Name(name)).Class
	if !class.Table() {
		return nil, fault.New(fault.Unsupported, "table", "its name ends neither like Parquet nor like CSV or JSON")
	}
	if class == magic.Records {
		return OpenRecords(ctx, o, []string{name}, true, cacheBytes)
	}
	opening := ctx
	if class == magic.Parquet {
		opening = WithSmallFile(ctx, cacheBytes)
	}
	file, err := o.Open(opening, name)
	if err != nil {
		return nil, err
	}
	var t *Table
	if class == magic.Parquet {
		t, err = OpenParquet(ctx, file, cacheBytes)
	} else {
		t, err = OpenText(ctx, file, name, func(name string) texts.Want {
			if slices.Contains(raw, name) || rest != "" && name == rest {
				return texts.Written
			}
			return texts.Values
		})
	}
	if err == nil {
		err = CheckRows(t.Rows())
	}
	if err != nil || class != magic.Parquet {
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

// OpenText reads a text, as its extension says: see texts.Read.
func OpenText(ctx context.Context, r source.Reader, name string, want func(name string) texts.Want) (*Table, error) {
	return inMemory(texts.Read(ctx, r, name, want))
}

// OpenFiles is OpenText of several files: see texts.ReadFiles.
func OpenFiles(ctx context.Context, o source.Opener, names, paths []string, want func(name string) texts.Want) (*Table,
	error) {
	return inMemory(texts.ReadFiles(ctx, o, names, paths, want))
}

// inMemory returns a table in memory.
func inMemory(read *texts.Table, err error) (*Table, error) {
	if err != nil {
		return nil, err
	}
	return &Table{memory: read.Table, begins: []int64{int64(read.Len())}, names: read.Names, part: read.Part}, nil
}
