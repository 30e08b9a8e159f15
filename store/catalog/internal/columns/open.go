package columns

import (
	"context"
	"path"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
)

// OpenFile opens the file of a table. A name without the extension of a table is fault.Unsupported.
func OpenFile(ctx context.Context, o source.Opener, name string) (source.Reader, error) {
	if !magic.Named(source.Name(name)).Class.Table() {
		return nil, fault.New(fault.Unsupported, "table", fault.NoOffset,
			"its name ends neither like Parquet nor like CSV or JSON")
	}
	return o.Open(ctx, name)
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
