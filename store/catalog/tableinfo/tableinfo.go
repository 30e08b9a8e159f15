// Package tableinfo says for people what tables hold.
package tableinfo

import (
	"context"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/texts"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
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

// CSV reads a CSV file, whose name says what separates its values. It does not close r.
func CSV(ctx context.Context, r source.Reader, name string) (*Summary, error) {
	tab, err := columns.OpenText(ctx, r, name, func(string) texts.Want { return texts.Values })
	if err != nil {
		return nil, err
	}
	return summary(ctx, tab)
}

// Records reads a TFRecord file.
func Records(ctx context.Context, o source.Opener, name string) (*Summary, error) {
	tab, err := columns.Open(ctx, o, name, 0)
	if err != nil {
		return nil, err
	}
	return summary(ctx, tab)
}

func summary(ctx context.Context, tab *columns.Table) (*Summary, error) {
	data, err := tab.Data(ctx)
	if err != nil {
		return nil, err
	}
	images, _ := catalog.ImageColumns(ctx, tab)
	made := &Summary{Rows: tab.Rows()}
	for _, c := range data.Columns() {
		typ := c.Type.String()
		if slices.Contains(images, c.Name) {
			typ = "images"
		}
		made.Columns = append(made.Columns, Column{Name: c.Name, Type: typ})
	}
	return made, nil
}

// Parquet reads the footer of a Parquet file, and the first rasters in its cells. It does not close r.
func Parquet(ctx context.Context, r source.Reader) (*Summary, error) {
	tab, err := columns.OpenParquet(ctx, r, 0)
	if err != nil {
		return nil, err
	}
	// A page that cannot be read shows no images, and the columns are listed all the same.
	images, _ := catalog.ImageColumns(ctx, tab)
	summary := &Summary{Catalog: tab.IsCatalog(), Rows: tab.Rows()}
	for i := range tab.Files[0].Columns {
		c := &tab.Files[0].Columns[i]
		typ := tables.LeafType(c).String()
		switch {
		case slices.Contains(images, strings.TrimSuffix(c.Name, catalog.BytesMember)):
			typ = "images"
		case c.Repeated:
			typ = "list of " + typ
		}
		summary.Columns = append(summary.Columns, Column{Name: c.Name, Type: typ})
	}
	return summary, nil
}

// Images returns the columns of a Parquet file whose cells hold the bytes of rasters. It does not close r.
func Images(ctx context.Context, r source.Reader) ([]string, error) {
	tab, err := columns.OpenParquet(ctx, r, 0)
	if err != nil {
		return nil, err
	}
	return catalog.ImageColumns(ctx, tab)
}
