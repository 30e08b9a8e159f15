package catalog

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog/internal/columns"
	"github.com/chaski-eo/chaski/store/catalog/internal/layout"
	"github.com/chaski-eo/chaski/store/catalog/internal/listing"
)

// fieldColumns holds the columns of the table that a field is made of.
type fieldColumns struct {
	name               string
	array              string // of Zarr stores, "" for the one that store.Group.Raster picks
	labels             string // the array whose values the field has, of stores
	kind               Kind
	axes               chunk.Axes        // as Source.Axes
	rows               []int64           // the row of the table that each sample has; nil: all rows, in order
	same               []uint32          // the first sample with the raster of each; nil: all differ: see Table.Same
	main               *columns.Column   // the values; of a raster its URIs
	resolved, optional bool              // its values are paths relative to the table, of files that need not be there
	contents           bool              // its values are what the files hold whose paths main has
	blobs              []*columns.Column // index blobs of a raster; the first that is not null counts
	cells              *cellRasters      // the bytes of the rasters, or nil if they are files of their own

	// columns are those that a catalog has of a raster, by their names in package layout: the ones that are there. Of a
	// listing there is layout.Size.
	columns map[string]*columns.Column
	names   *NamesParser // of layout.Names
}

// catalogKinds are the kinds of the columns of a catalog that older catalogs, and catalogs of other programs,
// may lack.
var catalogKinds = map[string]Kind{
	layout.Size: Int, layout.MTime: Text, layout.ETag: Text, layout.Height: Int, layout.Width: Int,
	layout.Offset: Int, layout.Length: Int, // of a raster in a container
	layout.EPSG: Int, layout.CRS: Text, layout.Names: Text, layout.Beside: Text,
	layout.MinX: Float, layout.MinY: Float, layout.MaxX: Float, layout.MaxY: Float,
	layout.Transform: Float | List, // which catalogs of other programs that have bounds alone lack
}

// tableField makes a field of a table. assets is the column of URIs if the table is a catalog, else "".
func (t *Table) tableField(ctx context.Context, tab *columns.Table, s Source,
	assets string) (_ fieldColumns, err error) {
	result := fieldColumns{name: s.Field, array: s.array, axes: s.Axes}
	name, prefix := cmp.Or(s.Column, assets, s.Field), ""
	if len(t.footer.fields) > 0 && s.Pattern == "" {
		switch i := slices.Index(t.footer.fields, cmp.Or(s.Column, s.Field)); {
		case i > 0:
			name, prefix = t.footer.fields[i], t.footer.fields[i]+layout.FieldSeparator
		case i == 0:
			name = assets
		case s.Column == "" && !tab.Has(s.Field):
			return result, fault.New(fault.NotFound, "", "the catalog has the fields %q", t.footer.fields)
		case s.Column == "":
			name = s.Field
		}
	}
	indexed := name == assets || prefix != ""
	if s.Pattern != "" && assets == "" {
		result.main, err = t.patternColumn(s.Pattern)
		if result.kind = Raster; s.Kind == Text || s.Beside {
			result.kind = Text
		}
		result.resolved, result.optional = s.Beside, s.Optional
		return result, err
	}
	if s.Beside {
		result.kind = Text
		return result, nil
	}
	if s.Column == "" && !tab.Has(name) && tab.Has(fileName(s.Field)) {
		name, s.Kind = fileName(s.Field), cmp.Or(s.Kind, Raster)
	}
	if s.Blob == "" && s.Kind != Text {
		if name, err = imageColumn(ctx, tab, s, name); err != nil {
			return result, err
		}
		if result.cells, err = cellsOf(ctx, tab, name); err != nil {
			return result, err
		}
		isArray := s.Kind == Raster || s.Axes.Dims != "" || s.Axes.Lengths != (chunk.Lengths{})
		if result.cells == nil && (isArray || isNested(tab, name)) {
			if result.cells, err = listsOf(tab, name, &result.axes); err != nil {
				return result, err
			}
		}
		if result.cells != nil {
			result.kind, result.main = Raster, result.cells.names()
			err = t.notePages(ctx, result.cells)
			return result, err
		}
	}
	column, err := t.anyColumn(name)
	if err != nil {
		return result, err
	}
	result.main, result.kind = column, column.Kind
	if result.blobs, err = blobColumns(tab, s.Blob, indexed, prefix); err != nil {
		return result, err
	}
	if s.Blob != "" && result.kind != Text {
		return result, fault.New(fault.Unsupported, "column "+name, "holds %ss, not paths", result.kind)
	}
	hasIndex := len(result.blobs) > 0 || indexed
	raster := s.Kind == Raster && result.kind == Text || s.Kind != Text && hasIndex
	if s.Kind != Text && !raster && result.kind == Text {
		if raster, err = namesRasters(ctx, column, name); err != nil {
			return result, err
		}
	}
	if !raster && column.Opaque {
		return result, fault.New(fault.Unsupported, "column "+name, "holds bytes that are not a string")
	}
	if raster {
		result.kind = Raster
	}
	if raster && indexed {
		result.catalogColumns(tab, prefix)
	}
	return result, nil
}

// patternColumn returns the column of the paths that a pattern becomes with the values of the columns that it names. A
// path lacks where a value does, or is empty.
func (t *Table) patternColumn(pattern string) (*columns.Column, error) {
	patterns, err := listing.ParsePatterns([]string{pattern})
	if err != nil {
		return nil, err
	}
	if len(patterns[0].Names()) == 0 || patterns[0].Stars() {
		return nil, fault.New(fault.Unsupported, "pattern", "%q must have names of columns, such as "+
			"{%s}, and no *: files are not searched for the rows of a table", pattern, t.table.Names()[0])
	}
	return column.Filled(pattern, true, t.column)
}

// imageColumn returns the column that a field reads: its own or, for the field of a dataset without fields, the
// column with the field's name, else the first one whose cells hold rasters.
func imageColumn(ctx context.Context, tab *columns.Table, s Source, name string) (string, error) {
	if s.Column != "" || name != defaultField || tab.Files == nil && !tab.OfRecords() {
		return name, nil
	}
	if tab.Has(name) || tab.Has(name+BytesMember) {
		return name, nil
	}
	names, err := ImageColumns(ctx, tab)
	return append(names, name)[0], err
}

// blobColumns returns the columns of index blobs: the named one, or the two of a catalog, which begin with prefix.
func blobColumns(tab *columns.Table, named string, catalog bool, prefix string) ([]*columns.Column, error) {
	var names []string
	switch {
	case named != "":
		names = []string{named}
	case catalog:
		names = []string{prefix + layout.Index, prefix + layout.Header}
	}
	var out []*columns.Column
	for _, name := range names {
		column, err := tab.Column(name)
		switch {
		case err != nil && named == "":
			// One of the two is missing, because a catalog of one format has one kind of blobs.
			continue
		case err != nil:
			return nil, err
		case column.Kind != Text:
			return nil, fault.New(fault.Unsupported, "column "+name, "holds %ss, not blobs", column.Kind)
		}
		out = append(out, column)
	}
	return out, nil
}

// catalogColumns finds the other columns that a catalog has for each file, whose names begin with prefix.
func (f *fieldColumns) catalogColumns(tab *columns.Table, prefix string) {
	f.columns = map[string]*columns.Column{}
	for name, kind := range catalogKinds {
		if column, err := tab.AnyColumn(prefix + name); err == nil && column.Kind == kind {
			f.columns[name] = column
		}
	}
	if f.columns[layout.Length] == nil {
		delete(f.columns, layout.Offset)
	}
	f.names = &NamesParser{}
}

// namesRasters reports whether the strings of a column name raster files, or byte ranges. If only some name rasters it
// is an error. Nulls and empty strings count for neither.
func namesRasters(ctx context.Context, c *columns.Column, name string) (bool, error) {
	var first [2]string // the first that does not name a raster, and the first that does
	var rows [2]int64
	// All rows are looked at, because the first may be "nan" or a file of another format, and sorting the table must
	// not change the column's kind.
	err := c.Scan(ctx, func(row int64, v Value) error {
		kind := 0
		isRaster := func(path string) bool {
			_, _, store := storeOf(path)
			_, _, array := source.SplitArray(path)
			format := magic.Named(path)
			return store || array || format.Class == magic.Raster || format == magic.VRT
		}
		text := string(v.Text)
		url, _, _ := strings.Cut(text, "?") // without the query of a signed one
		if source.IsRange(text) || isRaster(text) || strings.Contains(url, "://") && isRaster(url) {
			kind = 1
		}
		if first[kind] == "" {
			first[kind], rows[kind] = string(v.Text), row
		}
		return nil
	})
	if err == nil && first[0] != "" && first[1] != "" {
		err = fault.New(fault.Unsupported, "column "+name,
			"row %d, %q, names a raster and row %d, %q, does not: set the field's kind to "+
				"\"raster\" or \"text\"", rows[1], fault.Short(first[1]), rows[0], fault.Short(first[0]))
	}
	return first[1] != "", err
}

// ofSamples returns a column of the field with a row for each sample; nil of no column.
func (f *fieldColumns) ofSamples(c *columns.Column) *columns.Column { return column.Pick(c, f.rows) }

// tableRow returns the row of the table that a sample of the field has.
func (f *fieldColumns) tableRow(sample int64) int64 { return tableRow(f.rows, sample) }

// tableRow returns the row of the table that a sample has, if rows are the rows of all samples; nil: each has its own.
func tableRow(rows []int64, sample int64) int64 {
	if rows == nil {
		return sample
	}
	return rows[sample]
}

// asset makes a sample's asset from the table and, if that has no index, from the file.
func (t *Table) asset(ctx context.Context, f *fieldColumns, row int64) (Asset, error) {
	reader := newRowReader(ctx, f, row)
	paths := f.main
	if f.cells != nil {
		if asset, err := t.cellAsset(reader, f); asset.Index != nil || err != nil {
			return asset, err
		}
		paths = f.cells.paths // of a row without bytes
	}
	path := reader.cell(paths)
	if path.Null || len(path.Text) == 0 {
		reader.fail(fault.NotFound, "no path")
	}
	text, member := reader.member(f, string(path.Text))
	index := reader.index(f.blobs, t.maxChunk)
	if reader.err == nil && index == nil && member != nil {
		reader.fail(fault.Corrupt, "a member of a container without an index")
	}
	if f.axes != (chunk.Axes{}) {
		if index = nil; member != nil {
			reader.fail(fault.Unsupported, "pages or dims is %q: the catalog's index is of the file alone, and the "+
				"headers of members are not read again: name the container as the source",
				cmp.Or(f.axes.Pages, f.axes.Dims))
		}
	}
	asset := Asset{Index: index}
	reader.version(f, &asset)
	if reader.err != nil {
		return Asset{}, fault.WithFile(reader.err, t.src)
	}
	if array := arrayOf(text, f.array); array != text { // whose size is not the file's
		text, asset.Size = array, 0
	}
	text, array, store := storeOf(text)
	if array = cmp.Or(array, f.array); !store && t.inArrays(f, text) { // whose name has the array
		store, array = true, ""
	}
	uri, err := t.allow(text)
	if err != nil {
		return Asset{}, err
	}
	if index == nil && store {
		return OpenStore(ctx, t.opener, uri, f.name, array, cmp.Or(f.axes.Dims, t.stores.dims),
			t.maxChunk)
	}
	if asset.URI = uri; index == nil {
		ctx := WithBeside(context.WithValue(ctx, namesKey{}, t.beside), t.listed)
		opened, err := OpenSmall(ctx, t.opener, uri, asset.Known(), f.axes, t.maxChunk)
		if err == nil && IsVirtual(opened.Index) && asset.Size > 0 && asset.Size != opened.Size {
			err = opened.Fault(fault.New(fault.Corrupt, "file",
				"%d bytes; it had %d bytes when it was listed or indexed", opened.Size, asset.Size))
		}
		return opened, err
	}
	asset.Place, asset.Names = reader.place(f, index.Height, index.Width), reader.names(f, index.StepBands())
	sidecars := reader.cell(f.columns[layout.Beside])
	if reader.err != nil {
		return Asset{}, fault.WithFile(reader.err, t.src)
	}
	asset.fromCatalog(string(sidecars.Text))
	if member != nil {
		if asset, err = member.asset(asset, t.maxChunk); err != nil {
			return asset, err
		}
	}
	return asset, CheckRaster(ctx, t.opener, uri, asset.Offset)
}

// cellAsset makes the asset of a row from the bytes in its cell. If they are null the asset has no index.
func (t *Table) cellAsset(r *rowReader, f *fieldColumns) (a Asset, err error) {
	cell := r.cell(f.cells.bytes)
	if r.err != nil || cell.Null {
		return a, fault.WithFile(r.err, t.src)
	}
	uri, member := t.cell(f.cells, r.at)
	if uri, err = t.roots.Allow(uri); err != nil {
		return a, err
	}
	// A copy, because the cell is a part of its page, which the asset would keep in memory.
	data := bytes.Clone(cell.Text)
	a, _, err = readAsset(r.ctx, source.Memory(data), f.axes, t.maxChunk)
	if fault.KindOf(err) == fault.Corrupt && !magic.Of(data).Class.Pixels() {
		err = notRaster("header", 0, data)
	}
	a.URI, a.Member, a.Length, a.Bytes = uri, member, int64(len(data)), data
	if err != nil {
		return Asset{}, a.Fault(err)
	}
	return a, nil
}

// rowReader reads the cells of a sample. After the first error all cells are null.
type rowReader struct {
	ctx   context.Context
	row   int64  // of the sample, for errors
	field string // for errors
	at    int64  // its row in the table
	err   error
}

func newRowReader(ctx context.Context, f *fieldColumns, row int64) *rowReader {
	return &rowReader{ctx: ctx, row: row, field: f.name, at: f.tableRow(row)}
}

// cell returns the cell of a column. It is null if the table lacks the column, or the sample has no file.
func (r *rowReader) cell(c *columns.Column) Value {
	if c == nil || r.err != nil || r.at < 0 {
		return Value{Null: true}
	}
	cell, err := c.Cell(r.ctx, r.at)
	r.err = err
	return cell
}

func (r *rowReader) part() string { return fmt.Sprintf("field %q row %d", r.field, r.row) }

func (r *rowReader) fail(kind fault.Kind, format string, args ...any) {
	if r.err == nil {
		r.err = fault.New(kind, r.part(), format, args...)
	}
}

// index returns the index in the first blob of the row, or nil if it has no blob.
func (r *rowReader) index(blobs []*columns.Column, maxChunk int) *chunk.Index {
	for _, blob := range blobs {
		cell := r.cell(blob)
		if cell.Null || len(cell.Text) == 0 {
			continue
		}
		index, err := ParseIndex(cell.Text, maxChunk)
		r.err = fault.WithPart(err, r.part(), fault.NoOffset)
		return index
	}
	return nil
}

// version sets the asset's size, time and tag from the table, as far as it has them.
func (r *rowReader) version(f *fieldColumns, a *Asset) {
	a.Size, a.ETag = max(r.cell(f.columns[layout.Size]).Int, 0), string(r.cell(f.columns[layout.ETag]).Text)
	if when, err := time.Parse(time.RFC3339Nano, string(r.cell(f.columns[layout.MTime]).Text)); err == nil {
		a.MTime = when
	}
}

func noField(s Source, k fault.Kind, format string, args ...any) error {
	return fault.New(k, fmt.Sprintf("field %q", s.Field), format, args...)
}

// memberAt is a raster inside a container, as a row of a catalog describes it.
type memberAt struct {
	path           string
	offset, length int64
}

// member splits the URI of a member of a container into the container's URI and the member. Other URIs it returns as
// they are.
func (r *rowReader) member(f *fieldColumns, uri string) (string, *memberAt) {
	offset := r.cell(f.columns[layout.Offset])
	if offset.Null {
		return uri, nil
	}
	length := r.cell(f.columns[layout.Length])
	container, path, ok := strings.Cut(uri, layout.MemberSeparator)
	if !ok || length.Null {
		r.fail(fault.Corrupt, "%d bytes at %d of %q, which is not CONTAINER%sPATH", length.Int, offset.Int, uri,
			layout.MemberSeparator)
	}
	return container, &memberAt{path, offset.Int, length.Int}
}

// asset makes the asset of a member from the asset of its container.
func (m *memberAt) asset(a Asset, maxChunk int) (Asset, error) {
	a.Member, a.Offset, a.Length = m.path, m.offset, m.length
	size := cmp.Or(a.Size, math.MaxInt64) // or not known
	if !source.Fits(m.offset, m.length, size) {
		return a, a.Fault(fault.New(fault.Corrupt, "", "%d bytes at %d in a file of %d", m.length, m.offset, size))
	}
	maxChunk = cmp.Or(maxChunk, chunk.DefaultMaxBytes)
	// The index has the member's own offsets: it is checked before it is shifted, so a raster cannot read its
	// neighbours.
	if err := a.Index.Validate(m.length, maxChunk); err != nil {
		return a, a.Fault(err)
	}
	a.Index = a.Index.Shift(m.offset)
	return a, nil
}

// NamesColumn is the column of a table in which each raster has the names of its bands, as NamesText writes them.
const NamesColumn = layout.Names

// NamesParser parses the texts of NamesText. It keeps the last one, because most files of a table have the same names.
// Its zero value is ready, and safe for concurrent use.
type NamesParser struct{ last atomic.Pointer[parsedNames] }

type parsedNames struct {
	text  string
	names []string
}

// names returns the names of the bands of the row's file, one for each, or nil if the catalog does not say them.
func (r *rowReader) names(f *fieldColumns, bands int) (names []string) {
	if cell := r.cell(f.columns[layout.Names]); len(cell.Text) > 0 {
		names, r.err = f.names.Parse(r.row, cell.Text, bands)
	}
	return names
}

// Parse returns the names in the text of a row, one for each band: others are an error of kind corrupt.
func (n *NamesParser) Parse(row int64, text []byte, bands int) ([]string, error) {
	last := n.last.Load()
	if last == nil || last.text != string(text) {
		last = &parsedNames{text: string(text)}
		if err := json.Unmarshal(text, &last.names); err != nil {
			return nil, corruptNames(row, "%.60q is no JSON array of strings", text)
		}
		n.last.Store(last)
	}
	// Readers look for a band by its number, so one name less would move the others.
	if len(last.names) != bands {
		return nil, corruptNames(row, "%d names of %d bands", len(last.names), bands)
	}
	return last.names, nil
}

func corruptNames(row int64, format string, args ...any) error {
	return fault.New(fault.Corrupt, fmt.Sprintf("names of bands in row %d", row), format, args...)
}

// NamesText returns names of bands as a catalog has them, a JSON array, or "" for no names.
func NamesText(names []string) string {
	if len(names) == 0 {
		return ""
	}
	data, _ := json.Marshal(names) // strings have JSON
	return string(data)
}
