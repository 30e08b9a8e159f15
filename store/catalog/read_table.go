package catalog

import (
	"context"
	"errors"
	"io"

	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog/internal/columns"
	"github.com/chaski-eo/chaski/tables"
)

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
