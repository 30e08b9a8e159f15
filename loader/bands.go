package loader

import (
	"context"

	"github.com/chaski-eo/chaski/internal/lru"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
)

// nameBytes bounds the memory of band names, for each dataset: 8 MiB hold the names of about 10,000
// files of 20 bands.
const nameBytes = 8 << 20

// bandNames looks up bands by their names, and keeps the names of files.
type bandNames struct {
	opener source.Opener
	table  *rows.Table
	cache  *lru.Cache[string, []string]
}

// bandsOf returns the indices of a field's bands in an asset. Bands given by name are looked up in
// every file, because a file may have them in another order.
func (n *bandNames) bandsOf(ctx context.Context, f *pixels.Raster, a catalog.Asset) (*pixels.PickedBands, error) {
	if f.BandNames == nil {
		return f.PlanesOf(nil, a.Index), nil
	}
	bands, err := n.pick(ctx, &f.Field, a)
	if err != nil {
		return nil, err
	}
	return f.PlanesOf(bands, a.Index), nil
}

// pick returns the indices of a field's named bands in an asset.
func (n *bandNames) pick(ctx context.Context, f *Field, a catalog.Asset) ([]int, error) {
	key := a.URI + "\x00" + a.Member
	found, ok := a.Names, a.Names != nil
	if !ok {
		found, ok = n.cache.Get(key)
	}
	if !ok {
		var err error
		if found, err = n.table.NamesIn(ctx, n.opener, a); err != nil {
			return nil, err
		}
		cost := int64(len(key) + 64)
		for _, name := range found {
			cost += int64(len(name) + 16)
		}
		n.cache.Add(key, found, cost)
	}
	bands, err := pixels.PickBandsIn(a.Index, found, f.BandNames)
	return bands, a.Fault(err)
}
