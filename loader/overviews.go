package loader

import (
	"context"
	"slices"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/lru"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/store/catalog"
)

// overviewBytes bounds the memory of the indexes of overviews, for each dataset. A scene of 10,980 × 10,980 pixels in
// tiles of 512 has four of 11² + 6² + 3² + 2² = 170 chunks, which take 16 bytes each: 8 MiB hold those of about 2,000.
const overviewBytes = 8 << 20

// overviewKey names an asset.
type overviewKey struct{ uri, member string }

// overviews keeps the indexes of overviews, because catalogs have those of the rasters only.
type overviews struct {
	cache *lru.Cache[overviewKey, []*chunk.Index]
}

func newOverviews() *overviews {
	return &overviews{cache: lru.New[overviewKey, []*chunk.Index](overviewBytes)}
}

// of returns the overviews of an asset, from the largest to the smallest. Where one is unsupported, such as one of
// other bands, there are none: the raster itself can be read. One without the mask that the raster has is left out,
// because its masked pixels would count as valid.
func (o *overviews) of(ctx context.Context, opts resources.Options, a catalog.Asset) ([]*chunk.Index, error) {
	key := overviewKey{a.URI, a.Member}
	if levels, ok := o.cache.Get(key); ok {
		return levels, nil
	}
	levels, err := pixels.Overviews(ctx, opts, a)
	if fault.KindOf(err) == fault.Unsupported {
		levels, err = nil, nil
	}
	if err != nil {
		return nil, a.Fault(err)
	}
	levels = slices.DeleteFunc(levels, func(x *chunk.Index) bool { return a.Index.Mask != nil && x.Mask == nil })
	cost := int64(len(a.URI) + len(a.Member) + 64)
	for _, x := range levels {
		for ; x != nil; x = x.Mask {
			cost += 256 + int64(cap(x.Ranges))*16
		}
	}
	o.cache.Add(key, levels, cost)
	return levels, nil
}
