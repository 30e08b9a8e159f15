package catalog

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog/internal/columns"
	"github.com/chaski-eo/chaski/store/catalog/internal/layout"
	"github.com/chaski-eo/chaski/tables/parquet"
)

// Column describes one column of a Parquet or CSV file for people.
type Column struct {
	Name string `json:"name"` // path in the schema, joined by dots
	Type string `json:"type"` // numpy's name for numbers, else "text", "bytes", "images", "list of …", "other"
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
	held, err := columns.OpenText(ctx, r, name, nil)
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

// Describe reads the footer of a Parquet file. It does not close r.
func Describe(ctx context.Context, r source.Reader) (*Summary, error) {
	file, err := parquet.Open(ctx, r)
	if err != nil {
		return nil, err
	}
	summary := &Summary{Rows: file.Rows, Columns: make([]Column, len(file.Columns))}
	for i, c := range file.Columns {
		summary.Columns[i] = Column{Name: c.Name, Type: typeName(&c)}
	}
	if tab, err := columns.OpenParquet(ctx, r, 0); err == nil { // a page that cannot be read has no images to show
		images, _ := imageColumns(ctx, tab)
		for i, c := range file.Columns {
			if slices.Contains(images, strings.TrimSuffix(c.Name, bytesMember)) {
				summary.Columns[i].Type = "images"
			}
		}
	}
	has := func(name string) bool { return file.Column(name) >= 0 }
	summary.Catalog = file.Meta[layout.VersionKey] != "" || has(layout.URI) && (has(layout.Index) || has(layout.Header))
	return summary, nil
}

func typeName(c *parquet.Column) string {
	name := "other"
	switch {
	case c.Logical == parquet.Half:
		name = "float16"
	case c.Logical == parquet.Opaque && (c.Type == parquet.ByteArray || c.Type == parquet.FixedLenByteArray):
		name = "bytes"
	case c.Logical == parquet.String:
		name = "text"
	case c.Type == parquet.Boolean:
		name = "bool"
	case c.Type == parquet.Float:
		name = "float32"
	case c.Type == parquet.Double:
		name = "float64"
	case c.Type == parquet.Int32, c.Type == parquet.Int64:
		name = "int" + strconv.Itoa(map[parquet.Physical]int{parquet.Int32: 32, parquet.Int64: 64}[c.Type])
		if c.Logical == parquet.Unsigned {
			name = "u" + name
		}
	case c.Type == parquet.ByteArray, c.Type == parquet.FixedLenByteArray:
		name = "bytes"
	}
	if c.Repeated {
		name = "list of " + name
	}
	return name
}
