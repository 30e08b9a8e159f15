package catalog

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/texts"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog/internal/columns"
)

// Column describes one column of a Parquet or CSV file for people.
type Column struct {
	Name string `json:"name"` // path in the schema, joined by dots
	Type string `json:"type"` // "int32", "float64", "text", "binary", "timestamp", "list of …"; "images" of rasters
}

// Summary describes a Parquet or CSV file.
type Summary struct {
	Catalog bool     `json:"catalog"` // has the blobs of its assets
	Rows    int64    `json:"rows"`
	Columns []Column `json:"columns"`
}

// IsParquet reports whether a path or URI has an extension of Parquet files.
func IsParquet(uri string) bool { return magic.Named(source.Name(uri)).Class == magic.Parquet }

// IsTable reports whether a path or URI has the extension of a table: of Parquet, CSV or STAC items.
func IsTable(uri string) bool { return magic.Named(source.Name(uri)).Class.Table() }

// DescribeCSV reads a CSV file, whose name says what separates its values. It does not close r.
func DescribeCSV(ctx context.Context, r source.Reader, name string) (*Summary, error) {
	held, err := columns.OpenText(ctx, r, name, func(string) texts.Want { return texts.Values })
	if err != nil {
		return nil, err
	}
	data, err := held.Data(ctx)
	if err != nil {
		return nil, err
	}
	summary := &Summary{Rows: held.Rows()}
	for _, c := range data.Columns() {
		summary.Columns = append(summary.Columns, Column{Name: c.Name, Type: c.Type.String()})
	}
	return summary, nil
}

// Describe reads the footer of a Parquet file, and the first rasters in its cells. It does not close r.
func Describe(ctx context.Context, r source.Reader) (*Summary, error) {
	tab, err := columns.OpenParquet(ctx, r, 0)
	if err != nil {
		return nil, err
	}
	// A page that cannot be read shows no images, and the columns are listed all the same.
	images, _ := imageColumns(ctx, tab)
	summary := &Summary{Catalog: tab.IsCatalog(), Rows: tab.Rows()}
	for i := range tab.Files[0].Columns {
		c := &tab.Files[0].Columns[i]
		typ := tables.LeafType(c).String()
		switch {
		case slices.Contains(images, strings.TrimSuffix(c.Name, bytesMember)):
			typ = "images"
		case c.Repeated:
			typ = "list of " + typ
		}
		summary.Columns = append(summary.Columns, Column{Name: c.Name, Type: typ})
	}
	return summary, nil
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
