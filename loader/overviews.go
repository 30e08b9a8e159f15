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
// tiles of 512 has four of 11² + 6² + 3² + 2² = 170 chunks, which take 16 bytes each: 8 MiB hold the indexes of about
// 2,000.
const overviewBytes = 8 << 20

// overviewKey names an asset.
type overviewKey struct{ uri, member string }

// overviews keeps the indexes of overviews, because catalogs have only the indexes of the rasters.
type overviews struct {
	cache *lru.Cache[overviewKey, pixels.Levels]
}

func newOverviews() *overviews {
	return &overviews{cache: lru.New[overviewKey, pixels.Levels](overviewBytes)}
}

// of returns the overviews of an asset, from the largest to the smallest. If one is unsupported, such as one of
// other bands, it returns none: the raster itself can be read. One without the mask that the raster has is left out,
// because its masked pixels would count as valid.
func (o *overviews) of(ctx context.Context, opts resources.Options, a catalog.Asset) (pixels.Levels, error) {
	key := overviewKey{a.URI, a.Member}
	if levels, ok := o.cache.Get(key); ok {
		return levels, nil
	}
	levels, err := pixels.Overviews(ctx, opts, a)
	if fault.KindOf(err) == fault.Unsupported {
		levels, err = pixels.Levels{}, nil
	}
	if err != nil {
		return levels, a.Fault(err)
	}
	levels.Indexes = slices.DeleteFunc(levels.Indexes,
		func(x *chunk.Index) bool { return a.Index.Mask != nil && x.Mask == nil })
	cost := int64(len(a.URI) + len(a.Member) + 64)
	for _, x := range levels.Indexes {
		for ; x != nil; x = x.Mask {
			cost += 256 + int64(cap(x.Ranges))*16
		}
	}
	if f := levels.File; f != nil {
		cost += 512 + int64(len(f.URI)) + int64(cap(f.Index.Ranges))*16 // with the index that checks its time
	}
	o.cache.Add(key, levels, cost)
	return levels, nil
}
