package catalog

import (
	"context"
	"encoding/json"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog/internal/columns"
	"github.com/chaski-eo/chaski/store/catalog/internal/layout"
	"github.com/chaski-eo/chaski/store/catalog/internal/listing"
)

// pairedFields returns the fields of a catalog of pairs, nil for another catalog.
func pairedFields(tab *columns.ParquetTable) (names []string, err error) {
	text := tab.File.Meta[layout.FieldsKey]
	if text == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(text), &names); err != nil || len(names) == 0 || len(names) > layout.MaxFields {
		return nil, fault.New(fault.Corrupt, "footer", fault.NoOffset,
			"%s are not the names of fields", layout.FieldsKey)
	}
	return names, nil
}

// Fields returns the names of the fields of a catalog of pairs, nil for any other dataset.
func Fields(ctx context.Context, src string, o Options) (names []string, err error) {
	if !columns.IsParquet(listing.Extension(src)) {
		return nil, nil
	}
	o = o.withDefaults()
	t := &Table{src: src, roots: source.RootsOf(o.Opener), opener: o.Opener}
	file, err := t.reader(ctx)
	if err != nil {
		return nil, fault.WithFile(err, src)
	}
	tab, err := columns.OpenParquet(ctx, file, o.CacheBytes)
	if err != nil {
		_ = file.Close()
		return nil, fault.WithFile(err, src)
	}
	names, err = pairedFields(tab)
	_ = tab.Close()
	return names, fault.WithFile(err, src)
}
