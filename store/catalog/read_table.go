package catalog

import (
	"context"
	"io"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog/internal/columns"
	"github.com/chaski-eo/chaski/store/catalog/internal/listing"
	"github.com/chaski-eo/chaski/tables"
)

// ReadTable opens a Parquet or CSV file (.csv, .tsv), or STAC items as JSON, with all of its columns and their types.
// Columns of a CSV file that raw names stay strings. The table reads from the file until closer is closed. Errors do
// not have the name of the file.
func ReadTable(ctx context.Context, o source.Opener, path string, raw ...string) (t *tables.Table, closer io.Closer,
	err error) {
	ext := listing.Extension(path)
	parquet := ext == ".parquet" || ext == ".pq" || ext == ".geoparquet"
	if !parquet && ext != ".csv" && ext != ".tsv" && !columns.IsItems(ext) {
		return nil, nil, fault.New(fault.Unsupported, "table", fault.NoOffset,
			"its name ends neither like Parquet nor like CSV or JSON")
	}
	r, err := o.Open(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			_ = r.Close()
		}
	}()
	if parquet {
		t, err = tables.Read(ctx, r, 0, r.Size(), tables.Options{})
		return t, r, err
	}
	var held *columns.Held
	switch ext {
	case ".csv":
		held, err = columns.OpenCSV(ctx, r, ',', nil, raw...)
	case ".tsv":
		held, err = columns.OpenCSV(ctx, r, '\t', nil, raw...)
	default:
		held, err = columns.OpenItems(ctx, r, nil)
	}
	if err != nil {
		return nil, nil, err
	}
	if err := columns.CheckRows(held.N); err != nil {
		return nil, nil, err
	}
	return heldData(held), r, nil
}
