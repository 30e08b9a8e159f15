package columns

import (
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog/internal/listing"
)

// IsParquet reports whether files with an extension are Parquet.
func IsParquet(ext string) bool { return ext == ".parquet" || ext == ".pq" || ext == ".geoparquet" }

// IsCSV reports whether files with an extension are lines of values, with commas or tabs between them.
func IsCSV(ext string) bool { return ext == ".csv" || ext == ".tsv" }

// IsItems reports whether files with an extension hold STAC items.
func IsItems(ext string) bool {
	return ext == ".json" || ext == ".geojson" || ext == ".jsonl" || ext == ".ndjson"
}

// IsTable reports whether files with an extension are tables.
func IsTable(ext string) bool { return IsParquet(ext) || IsCSV(ext) || IsItems(ext) }

// OpenFile opens the file of a table, and returns its extension. A name without the extension of a table is
// fault.Unsupported.
func OpenFile(ctx context.Context, o source.Opener, name string) (r source.Reader, ext string, err error) {
	if ext = listing.Extension(name); !IsTable(ext) {
		return nil, "", fault.New(fault.Unsupported, "table", fault.NoOffset,
			"its name ends neither like Parquet nor like CSV or JSON")
	}
	r, err = o.Open(ctx, name)
	return r, ext, err
}

// OpenHeld reads a CSV file or STAC items, by the extension ext. It keeps the columns that want accepts (nil: all).
// The columns of a CSV file that raw names stay strings, even if all of their values are numbers.
func OpenHeld(ctx context.Context, r source.Reader, ext string, want func(name string) bool,
	raw ...string) (*Held, error) {
	if want == nil {
		want = func(string) bool { return true }
	}
	switch ext {
	case ".csv":
		return openCSV(ctx, r, ',', want, raw)
	case ".tsv":
		return openCSV(ctx, r, '\t', want, raw)
	}
	return openItems(ctx, r, want)
}
