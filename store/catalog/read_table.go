package catalog

import (
	"context"
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
	file, err := columns.OpenFile(ctx, o, path)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			_ = file.Close()
		}
	}()
	if IsParquet(path) {
		t, err = tables.Read(ctx, file, 0, file.Size(), tables.Options{})
		return t, file, err
	}
	held, err := columns.OpenText(ctx, file, path, nil, raw...)
	if err != nil {
		return nil, nil, err
	}
	t, err = held.Data(ctx)
	return t, file, err
}
