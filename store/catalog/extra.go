package catalog

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/texts"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog/internal/columns"
	"github.com/chaski-eo/chaski/store/catalog/internal/layout"
	"github.com/chaski-eo/chaski/store/catalog/internal/sidecar"
)

// Column returns a column by its name, with a row for each sample. It need not be a field's; of a CSV file
// Options.Columns must name it. Its values are no lists, and its dates and timestamps count from 1970-01-01T00:00:00Z,
// also without a zone.
func (t *Table) Column(_ context.Context, name string) (*column.Column, error) {
	if labels := t.stores.columns[name]; labels != nil {
		return t.inFile(labels), nil
	}
	found, err := t.column(name)
	if err != nil {
		return nil, fault.WithFile(err, t.src)
	}
	return t.inFile(column.Pick(found, t.order)), nil
}

// Picked returns the values of a column in some rows, in their order; the value of row -1 is null. A column that is
// slow to read cell by cell, such as one of a Parquet file, is in memory while it is scanned, because the rows may have
// any order.
func Picked(c *column.Column, rows []int32) *column.Column {
	picked := column.Pick(c, rows)
	if c.Each != nil {
		picked.Each = func(ctx context.Context, visit column.Visit) error {
			values, err := columns.Vector(ctx, c)
			if err != nil {
				return err
			}
			held, err := values.Column("")
			if err != nil {
				return err
			}
			return column.Pick(held, rows).Scan(ctx, visit)
		}
	}
	return picked
}

// inFile returns a column whose errors name the dataset.
func (t *Table) inFile(c *column.Column) *column.Column {
	out := *c
	out.Cell = func(ctx context.Context, row int64) (Value, error) {
		v, err := c.Cell(ctx, row)
		return v, fault.WithFile(err, t.src)
	}
	if c.Each != nil {
		out.Each = func(ctx context.Context, visit column.Visit) error {
			return fault.WithFile(c.Each(ctx, visit), t.src)
		}
	}
	return &out
}

// Columns that listings and catalogs have beside those that are stored, and those that the names of patterns make. A
// column of such a name that a catalog stores goes before it.
const (
	// FolderColumn is the name of the folder that holds a sample's file, "" for files at the top. Datasets with a
	// folder for each class have their classes in it.
	FolderColumn = "folder"
	// NameColumn is the name of a sample's file without its ending.
	NameColumn = "name"
	// PathColumn is the path of a sample's file below the dataset.
	PathColumn = "path"
)

// PathColumns are the names of these columns.
var PathColumns = []string{FolderColumn, NameColumn, PathColumn}

// isNamed reports whether a column is one that paths make: the name of a pattern, or one of PathColumns that a table
// does not store.
func isNamed(fields []Source, tab *columns.Table, name string) bool {
	return named(fields, name) || slices.Contains(PathColumns, name) && !tab.Has(name)
}

// named reports whether a column is a name of a pattern.
func named(fields []Source, name string) bool {
	return slices.ContainsFunc(fields, func(s Source) bool { return slices.Contains(column.Names(s.Pattern), name) })
}

// paths are the paths of the files of a listing or a catalog, by row.
type paths struct {
	*columns.Column
	// root is the directory, with "/" at the end, below which patterns match the paths: the one that all absolute paths
	// of a catalog share. Listed paths lie below it already, or lead out of it.
	root string
	// listed says that the directory was listed, so the paths below it call the samples. In a listing they are in
	// order, and no two are the same.
	listed bool
}

// below returns the part of a path that patterns match.
func (p *paths) below(path string) string { return strings.TrimPrefix(path, p.root) }

// nameColumns makes PathColumns, unless the table stores them, and a column of each name of the leading pattern, nil
// without one. It also makes the keys of the samples.
func (t *Table) nameColumns(uris *paths, leading *matched) {
	t.pathColumns = map[string]*columns.Column{}
	below := uris.Column
	if uris.root != "" {
		below = column.Map(below, func(_ int64, c Value) Value {
			return Value{Text: []byte(uris.below(string(c.Text))), Null: c.Null}
		})
	}
	if t.keys = uris.Column; uris.listed {
		t.keys = below
	}
	stems := column.Map(below, func(_ int64, c Value) Value {
		return Value{Text: []byte(stem(string(c.Text))), Null: c.Null}
	})
	for name, made := range map[string]*columns.Column{
		PathColumn: below, FolderColumn: columns.Folders(t.keys), NameColumn: stems,
	} {
		if !t.table.Has(name) {
			t.pathColumns[name] = made
		}
	}
	if leading == nil {
		return
	}
	names := matched{pattern: leading.pattern, order: leading.order} // without its files, which would stay in memory
	made := func(of func(values []string) string) *columns.Column {
		return column.Map(uris.Column, func(_ int64, c Value) Value {
			values, ok, _ := names.pattern.Match(uris.below(string(c.Text)), nil)
			if !ok { // it is no sample
				return Value{Null: true}
			}
			return Value{Text: []byte(of(values))}
		})
	}
	for k, name := range names.pattern.Names() {
		if !uris.listed || !t.table.Has(name) {
			t.pathColumns[name] = made(func(values []string) string { return values[k] })
		}
	}
	t.keys = made(names.keyOf)
}

// nameAsListed gives the samples of a listing or a catalog without patterns their columns and keys: of a catalog of a
// directory those that they had there.
func (t *Table) nameAsListed() error {
	was := t.footer.listed
	if was.Root == "" && was.Patterns == nil {
		t.nameColumns(t.paths, nil)
		return nil
	}
	fields := make([]Source, len(was.Patterns))
	for i, pattern := range was.Patterns {
		fields[i].Pattern = withoutDot(pattern)
	}
	files, first, err := parsePatterns(fields)
	if err != nil {
		return err
	}
	var leading *matched
	if first >= 0 {
		leading = files[first]
	}
	t.nameColumns(&paths{Column: t.paths.Column, root: was.Root, listed: true}, leading)
	return nil
}

// stem returns the name of a file without its ending: "a" of "s2/a.zarr.zip".
func stem(uri string) string {
	file, _, _ := source.Split(uri)
	if source.IsWeb(file) {
		file, _, _ = strings.Cut(file, "?")
	}
	file = path.Base(file)
	if zip := strings.TrimSuffix(file, ".zip"); magic.Named(zip).Folder {
		file = zip
	}
	return strings.TrimSuffix(file, path.Ext(file))
}

// nameFields gives the fields that read columns of paths their values. The values of names are numbers where the values
// of a text table are.
func (t *Table) nameFields(ctx context.Context, fields []Source, o Options) error {
	want := o.wants(fields, false)
	for name, named := range t.pathColumns {
		if name == FolderColumn || name == PathColumn {
			continue
		}
		inferred, err := columns.Inferred(ctx, named, want(name))
		if err != nil {
			return fault.WithPart(err, "column "+name, fault.NoOffset)
		}
		t.pathColumns[name] = inferred
	}
	for i, s := range fields {
		if f := &t.fields[i]; f.main == nil && !s.Beside && f.labels == "" {
			f.main = t.pathColumns[s.Column]
			f.kind = f.main.Kind
		}
	}
	return nil
}

// withNamed returns a table for queries with the columns of paths at its end.
func (t *Table) withNamed(stored *tables.Table) *tables.Table {
	var made []tables.Column
	for _, name := range slices.Sorted(maps.Keys(t.pathColumns)) {
		if stored.Index(name) < 0 {
			made = append(made, tables.Column{Name: name, Type: columns.TypeOf(t.pathColumns[name])})
		}
	}
	return tables.Join(stored, tables.New(stored.Len(), made, func(ctx context.Context, i int) (*tables.Vector, error) {
		return columns.Vector(ctx, t.pathColumns[made[i].Name])
	}))
}

// column returns a column by its name, with the rows of the table. Its values are no lists.
func (t *Table) column(name string) (*columns.Column, error) {
	found, err := t.anyColumn(name)
	if err != nil {
		return nil, err
	}
	return columns.NoLists(found, name)
}

// anyColumn is column with columns of lists.
func (t *Table) anyColumn(name string) (*columns.Column, error) {
	if named := t.pathColumns[name]; named != nil {
		return named, nil
	}
	if t.Listed() {
		return nil, fault.New(fault.NotFound, "column "+name, "it needs a table (.parquet, .csv or .tsv): listed "+
			"rasters have no columns but %q", slices.Sorted(maps.Keys(t.pathColumns)))
	}
	found, err := t.table.AnyColumn(name)
	if err != nil {
		// The asset of a STAC item, by its name.
		if asset, aerr := t.table.Column(texts.AssetColumn(name)); aerr == nil {
			return asset, nil
		}
	}
	return found, err
}

// HasColumn reports whether there is a column of a name, other than the numbers of rows. Its values may be ones that
// are not read.
func (t *Table) HasColumn(name string) bool {
	if name == column.RowColumn && !t.table.Has(name) {
		return false
	}
	_, err := t.anyColumn(name)
	return fault.KindOf(err) != fault.NotFound
}

// Listed reports whether the dataset is a listing of files, and not a table.
func (t *Table) Listed() bool { return t.paths != nil && t.paths.listed }

// Base returns the directory that paths of the dataset are relative to.
func (t *Table) Base() string { return t.base }

// halves returns the patterns of an image and of its mask, judged by the names of their folders; nil without them.
func halves(paths []string) []string {
	for _, name := range paths {
		folder, file, _ := strings.Cut(name, "/")
		if !slices.Contains([]string{"image", "images", "img", "imgs"}, folder) {
			continue
		}
		id := "/" + strings.TrimSuffix(file, path.Ext(file)) + "."
		for _, other := range paths {
			i := strings.Index(other, id)
			if i > 0 && slices.Contains([]string{"mask", "masks", "label", "labels", "annotations"}, other[:i]) {
				return []string{folder + "/{id}" + path.Ext(file), other[:i] + "/{id}" + path.Ext(other)}
			}
		}
		return nil
	}
	return nil
}

// Beside returns the names of files beside rasters that the listing of the dataset has found, by directory.
func (t *Table) Beside() map[string]sidecar.Names { return t.listed }

// Paths returns the paths of a field's files, resolved against the dataset's directory, in the order of the samples. A
// file with several samples has one path.
func (t *Table) Paths(ctx context.Context, field int) (paths []string, err error) {
	err = t.values(field).Scan(ctx, func(row int64, c Value) error {
		if t.stores.images != nil && t.stores.images[row] > 0 {
			return nil
		}
		paths = append(paths, arrayOf(t.resolve(string(c.Text)), t.fields[field].array))
		return nil
	})
	return paths, err
}

// ScanIDs visits what ID returns for all samples, in order.
func (t *Table) ScanIDs(ctx context.Context, visit func(row int64, id string) error) error {
	for i := range t.fields {
		if t.fields[i].kind != Raster {
			continue
		}
		err := t.values(i).Scan(ctx, func(row int64, c Value) error {
			if !c.Null {
				return visit(row, t.named(string(c.Text), row))
			}
			id, err := t.ID(ctx, row) // of another raster, if it has one
			if err != nil {
				return err
			}
			return visit(row, id)
		})
		return fault.WithFile(err, t.src)
	}
	for row := range t.n {
		if err := visit(row, rowName(row)); err != nil {
			return err
		}
	}
	return nil
}

// rowName names a row that has no path.
func rowName(row int64) string { return "row " + strconv.FormatInt(row, 10) }

// Size is the height and width of an asset in pixels.
type Size struct{ Height, Width int32 }

// Sizes returns the sizes of a raster field's assets without opening any file, if the table has them as a catalog does,
// else nil. Rows without a size have 0 by 0.
func (t *Table) Sizes(ctx context.Context, field int) ([]Size, error) {
	raster := &t.fields[field]
	height, width := raster.columns[layout.Height], raster.columns[layout.Width]
	if height == nil || width == nil {
		return nil, nil
	}
	sizes := make([]Size, t.n)
	err := raster.ofSamples(height).Scan(ctx, func(row int64, c Value) error {
		sizes[row].Height = side(c)
		return nil
	})
	if err == nil {
		err = raster.ofSamples(width).Scan(ctx, func(row int64, c Value) error {
			sizes[row].Width = side(c)
			return nil
		})
	}
	return sizes, fault.WithFile(err, t.src)
}

// StepCount says how many steps of time the assets of a field have.
type StepCount struct {
	Most        int   // of all assets; 0: unknown
	Lacking, Of int64 // how many assets, of how many that were counted, have fewer than were asked for
}

// maxCounted bounds the assets whose steps are counted once one has all: the indexes of 65,536 are parsed in a second.
const maxCounted = 1 << 16

// CountSteps counts the steps of time of a raster field's assets without opening any file, if the table has the index
// of each. It stops after maxCounted assets once it has seen one with enough.
func (t *Table) CountSteps(ctx context.Context, field, enough int) (count StepCount, err error) {
	return t.countSteps(ctx, field, enough, maxCounted)
}

func (t *Table) countSteps(ctx context.Context, field, enough int, most int64) (count StepCount, err error) {
	raster := &t.fields[field]
	if len(raster.blobs) == 0 || raster.axes != (chunk.Axes{}) {
		return count, nil
	}
	for row := range t.n {
		if count.Most >= enough && count.Of >= most {
			break
		}
		reader := newRowReader(ctx, raster, row)
		switch index := reader.index(raster.blobs, t.maxChunk); {
		case fault.KindOf(reader.err) != 0: // a bad sample
		case reader.err != nil:
			return count, reader.err
		case index == nil:
			return StepCount{}, nil
		default:
			count.Most = max(count.Most, index.Steps())
			if count.Of++; index.Steps() < enough {
				count.Lacking++
			}
		}
	}
	return count, nil
}

// side returns the height or width in a cell, 0 if it is not a possible one.
func side(c Value) int32 {
	if uint64(c.Int) > 1<<30 { // as which a negative one is too large
		return 0
	}
	return int32(c.Int)
}

// Data returns the dataset's table for queries: a row for each sample, and the stored columns with their types; of a
// CSV file those that Options.Columns names, or all with Options.AllColumns. Behind them are the columns of paths.
// Columns are read when they are first used, and stay in memory as long as the result.
func (t *Table) Data(ctx context.Context) (*tables.Table, error) {
	out, err := t.table.Data(ctx)
	if err != nil {
		return nil, fault.WithFile(err, t.src)
	}
	if len(t.pathColumns) > 0 {
		out = t.withNamed(out)
	}
	if t.order == nil {
		return out, nil
	}
	return out.Take(num.As[int](t.order)), nil
}

// OpenCell returns the raster in a cell of a Parquet file by the name of its asset: ROW/COLUMN, or ROW for the column
// "image". Other names are fault.NotFound.
func OpenCell(ctx context.Context, o source.Opener, table, name string, maxChunk int) (a Asset, err error) {
	number, column, _ := strings.Cut(name, "/")
	row, err := strconv.Atoi(number)
	if err != nil {
		return a, fault.WithFile(fault.New(fault.NotFound, "sample "+name,
			"rasters of a table are called ROW/COLUMN, such as 0/%s", defaultField), table)
	}
	source := Source{Field: cmp.Or(column, defaultField)}
	t, err := Open(ctx, table, []Source{source}, Options{Opener: o, MaxChunk: maxChunk})
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	switch {
	case t.Kind(0) != Raster:
		return a, fault.WithFile(fault.New(fault.Unsupported, "column "+source.Field, "holds no rasters"), table)
	case row < 0 || int64(row) >= t.Len():
		return a, fault.WithFile(fault.New(fault.NotFound, "sample "+name, "there are %d rows", t.Len()), table)
	}
	return t.Asset(ctx, 0, int64(row))
}
