package catalog

import (
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog/internal/columns"
)

// Fields returns the names of the fields of a catalog of pairs, nil for any other dataset.
func Fields(ctx context.Context, src string, o Options) (names []string, err error) {
	if !IsParquet(src) {
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
