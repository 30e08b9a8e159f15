package columns

import (
	"context"
	"errors"
	"path"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
)

// Open opens a Parquet or CSV file, or STAC items, with all of its columns: see OpenParquet and OpenText. A name
// without the extension of a table is fault.Unsupported.
func Open(ctx context.Context, o source.Opener, name string, cacheBytes int64, raw ...string) (*Table, error) {
	class := magic.Named(source.Name(name)).Class
	if !class.Table() {
		return nil, fault.New(fault.Unsupported, "table", fault.NoOffset,
			"its name ends neither like Parquet nor like CSV or JSON")
	}
	file, err := o.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	var t *Table
	if class == magic.Parquet {
		t, err = OpenParquet(ctx, file, cacheBytes)
	} else {
		t, err = OpenText(ctx, file, name, nil, raw...)
	}
	if err == nil {
		err = CheckRows(t.Rows())
	}
	if err != nil || class != magic.Parquet {
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

// OpenText reads a CSV file or STAC items, as the extension of name says. It keeps the columns that want accepts (nil:
// all).
// The columns of a CSV file that raw names stay strings, even if all of their values are numbers.
func OpenText(ctx context.Context, r source.Reader, name string, want func(name string) bool,
	raw ...string) (*Table, error) {
	if want == nil {
		want = func(string) bool { return true }
	}
	switch name = source.Name(name); {
	case magic.Named(name).Class != magic.CSV:
		return openItems(ctx, r, want)
	case strings.EqualFold(path.Ext(name), ".tsv"):
		return openCSV(ctx, r, '\t', want, raw)
	}
	return openCSV(ctx, r, ',', want, raw)
}
