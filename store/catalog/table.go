package catalog

import (
	"context"
	"errors"
	"io"

	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog/internal/columns"
)

// IsParquet reports whether a path or URI has an extension of Parquet files.
func IsParquet(uri string) bool { return magic.Named(source.Name(uri)).Class == magic.Parquet }

// HasCells reports whether a path or URI has an extension of tables whose cells may hold rasters.
func HasCells(uri string) bool {
	class := magic.Named(source.Name(uri)).Class
	return class == magic.Parquet || class == magic.Records
}

// IsTable reports whether a path or URI has the extension of a table: of Parquet, CSV or STAC items. A CSV file may
// name its last column, FILE.csv::NAME+, which then has the rest of each line.
func IsTable(uri string) bool {
	uri, _ = columns.CutRest(uri)
	return magic.Named(source.Name(uri)).Class.Table()
}

// Kind is the kind of a field of a sample.
type Kind = column.Kind

// Kinds. All integers are read as 64-bit integers, and all floats as float64.
const (
	Raster = column.Raster // a path or URI
	Int    = column.Int
	Float  = column.Float
	Text   = column.Text // UTF-8
	List   = column.List // of another: Int | List
)

// Value is the value of a metadata column, in the member that its field's Kind names. Of a null all of them are zero.
type Value = column.Value

// ReadTable opens a Parquet or CSV file (.csv, .tsv), or STAC items as JSON, with all of its columns and their types.
// Columns of a CSV file that raw names stay strings. The table reads from the file until closer is closed. Errors do
// not have the name of the file.
func ReadTable(ctx context.Context, o source.Opener, path string, raw ...string) (t *tables.Table, closer io.Closer,
	err error) {
	tab, err := columns.Open(ctx, o, path, 0, raw...)
	if err != nil {
		return nil, nil, err
	}
	if t, err = tab.Data(ctx); err != nil {
		return nil, nil, errors.Join(err, tab.Close())
	}
	return t, tab, nil
}
