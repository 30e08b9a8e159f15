package catalog

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog/internal/columns"
	"github.com/chaski-eo/chaski/store/catalog/internal/layout"
	"github.com/chaski-eo/chaski/store/catalog/internal/listing"
	"github.com/chaski-eo/chaski/store/catalog/internal/sidecar"
)

// Scan visits the values of a column of the table, of all samples in order. The column need not be a field's; of a CSV
// file Options.Columns must name it. Scan returns the column's kind. An error of visit ends it and is returned. Nothing
// stays in memory.
func (t *Table) Scan(ctx context.Context, name string, visit func(row int64, v Value) error) (Kind, error) {
	column, err := t.column(name)
	if err != nil {
		return 0, fault.WithFile(err, t.src)
	}
	err = columns.Pick(column, t.order).Scan(ctx, func(row int64, c columns.Cell) error {
		return visit(row, c.Value())
	})
	return column.Kind, fault.WithFile(err, t.src)
}

// FolderColumn is a column that listings and catalogs have beside those that are stored: the name of the folder that
// holds a sample's file, "" for files at the top. Datasets with a folder for each class have their classes in it. A
// column of this name that a catalog stores goes before it.
const FolderColumn = "folder"

// column returns a column by its name, with the rows of the table. Its values are no lists.
func (t *Table) column(name string) (*columns.Column, error) {
	column, err := t.anyColumn(name)
	if err != nil {
		return nil, err
	}
	return column.NoLists(name)
}

// anyColumn is column with columns of lists.
func (t *Table) anyColumn(name string) (*columns.Column, error) {
	if name == FolderColumn && t.folders != nil {
		return t.folders, nil
	}
	if t.table == nil {
		return nil, fault.New(fault.NotFound, "column "+name, fault.NoOffset,
			"it needs a table (.parquet, .csv or .tsv): listed rasters have no columns but %q", FolderColumn)
	}
	column, err := t.table.AnyColumn(name)
	if err != nil {
		// The asset of a STAC item, by its name.
		if asset, aerr := t.table.Column(columns.AssetColumn(name)); aerr == nil {
			return asset, nil
		}
	}
	return column, err
}

// TimeUnit returns the unit of a column of dates or timestamps, whose numbers count from 1970-01-01T00:00:00Z, also
// without a zone. It is 0 if the column is neither.
func (t *Table) TimeUnit(_ context.Context, name string) time.Duration {
	if t.table == nil {
		return 0
	}
	column, err := t.table.Column(name)
	if err != nil {
		return 0
	}
	return column.Unit
}

// Listed reports whether the dataset is a listing of files, and not a table.
func (t *Table) Listed() bool { return t.table == nil }

// Halves returns patterns that would pair the images and masks of a directory whose files are samples of their own.
func (t *Table) Halves() []string { return t.halves }

// halves returns the patterns of an image and of its mask, judged by the names of their folders; nil without them.
func halves(paths []string) []string {
	for _, name := range paths {
		folder, file, _ := strings.Cut(name, "/")
		if !slices.Contains([]string{"image", "images", "img", "imgs"}, folder) {
			continue
		}
		id := "/" + strings.TrimSuffix(file, path.Ext(file)) + "."
		for _, other := range paths {
			at := strings.Index(other, id)
			if at > 0 && slices.Contains([]string{"mask", "masks", "label", "labels", "annotations"}, other[:at]) {
				return []string{folder + "/{id}" + path.Ext(file), other[:at] + "/{id}" + path.Ext(other)}
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
	err = t.values(field).Scan(ctx, func(row int64, c columns.Cell) error {
		if t.images != nil && t.images[row] > 0 {
			return nil
		}
		paths = append(paths, listing.Resolve(t.base, string(c.Text)))
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
		err := t.values(i).Scan(ctx, func(row int64, c columns.Cell) error {
			if c.Null {
				return visit(row, rowName(row))
			}
			return visit(row, t.named(string(c.Text), row))
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
	err := raster.ofSamples(height).Scan(ctx, func(row int64, c columns.Cell) error {
		sizes[row].Height = side(c)
		return nil
	})
	if err == nil {
		err = raster.ofSamples(width).Scan(ctx, func(row int64, c columns.Cell) error {
			sizes[row].Width = side(c)
			return nil
		})
	}
	return sizes, fault.WithFile(err, t.src)
}

// side returns the height or width in a cell, 0 if it is not a possible one.
func side(c columns.Cell) int32 {
	if c.Null || c.Int < 0 || c.Int > 1<<30 {
		return 0
	}
	return int32(c.Int)
}

// Data returns the dataset's table for queries: a row for each sample, and the stored columns with their types; of a
// CSV file those that Options.Columns names, or all with Options.AllColumns. Columns are read when they are first used,
// and stay in memory as long as the result. A directory has no table: fault.Unsupported.
func (t *Table) Data(ctx context.Context) (*tables.Table, error) {
	if t.table == nil {
		return nil, fault.WithFile(fault.New(fault.Unsupported, "columns", fault.NoOffset,
			"a directory has none to compare: conditions need a table (.parquet, .csv or .tsv)"), t.src)
	}
	out, err := t.table.Data(ctx)
	if err != nil {
		return nil, fault.WithFile(err, t.src)
	}
	if t.order == nil {
		return out, nil
	}
	rows := make([]int, len(t.order))
	for i, row := range t.order {
		rows[i] = int(row)
	}
	return out.Take(rows), nil
}

// OpenCell returns the raster in a cell of a Parquet file by the name of its asset: ROW/COLUMN, or ROW for the column
// "image". Other names are fault.NotFound.
func OpenCell(ctx context.Context, o source.Opener, table, name string, maxChunk int) (a Asset, err error) {
	number, column, _ := strings.Cut(name, "/")
	row, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return a, fault.WithFile(fault.New(fault.NotFound, "sample "+name, fault.NoOffset,
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
		return a, fault.WithFile(fault.New(fault.Unsupported, "column "+source.Field, fault.NoOffset,
			"holds no rasters"), table)
	case row < 0 || row >= t.Len():
		return a, fault.WithFile(fault.New(fault.NotFound, "sample "+name, fault.NoOffset, "there are %d rows",
			t.Len()), table)
	}
	return t.Asset(ctx, 0, row)
}
