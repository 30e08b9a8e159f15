package loader

import (
	"context"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/crs/warp"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/store/catalog"
)

// nearest reports whether a field takes scenes by their times.
func (d *dataset) nearest() bool {
	return slices.ContainsFunc(d.fields, func(f Field) bool { return f.Match == spec.MatchNearest })
}

// overviewBytes bounds the memory of the indexes of overviews, for each dataset. A scene of 10,980 × 10,980 pixels in
// tiles of 512 has four of 11² + 6² + 3² + 2² = 170 chunks, which take 16 bytes each: 8 MiB hold the indexes of about
// 2,000.
const overviewBytes = 8 << 20

// overviewsOf returns the overviews of an asset, from the largest to the smallest. If one is unsupported, such as one
// of other bands, it returns none: the raster itself can be read. One without the mask that the raster has is left out,
// because its masked pixels would count as valid.
func (d *dataset) overviewsOf(ctx context.Context, o resources.Options, a catalog.Asset) (pixels.Levels, error) {
	key := overviewKey{a.URI, a.Member}
	if levels, ok := d.overviews.Get(key); ok { // catalogs have only the indexes of the rasters
		return levels, nil
	}
	levels, err := pixels.Overviews(ctx, o, a)
	if fault.KindOf(err) == fault.Unsupported {
		levels, err = pixels.Levels{}, nil
	}
	if err != nil {
		return levels, a.Fault(err)
	}
	levels.Indexes = slices.DeleteFunc(levels.Indexes,
		func(index *chunk.Index) bool { return a.Index.Mask != nil && index.Mask == nil })
	cost := int64(len(a.URI) + len(a.Member) + 64)
	for _, index := range levels.Indexes {
		for ; index != nil; index = index.Mask {
			cost += 256 + int64(cap(index.Ranges))*16
		}
	}
	if f := levels.File; f != nil {
		cost += 512 + int64(len(f.URI)) + int64(cap(f.Index.Ranges))*16 // with the index that checks its time
	}
	d.overviews.Add(key, levels, cost)
	return levels, nil
}

// overviewFor returns the overview of an asset that a field reads by a rule (spec.AutoOverviews) for a window with this
// mapping to the asset, or nil if it reads the asset itself.
func (d *dataset) overviewFor(ctx context.Context, e *Engine, f *pixels.Raster, rule string, a catalog.Asset,
	m *warp.Mapping) (*catalog.Asset, error) {
	// Overviews were made with what the file declares.
	if !f.WantsOverview(rule, m) || f.NoData != nil {
		return nil, nil
	}
	levels, err := d.overviewsOf(ctx, e.options, a)
	if err != nil {
		return nil, err
	}
	level := pixels.Coarsest(levels.Indexes, m)
	if level < 0 {
		return nil, nil
	}
	overview := pixels.AtOverview(a, levels, level)
	return &overview, nil
}

// coarser returns the overview of a scene that has the resolution of a window on the ground, and the mapping to it. m
// is the mapping to the full raster. Without a fitting overview it returns the raster and m.
func (d *dataset) coarser(ctx context.Context, e *Engine, f *pixels.Raster, window warp.Raster, a catalog.Asset,
	m *warp.Mapping) (catalog.Asset, *warp.Mapping, error) {
	overview, err := d.overviewFor(ctx, e, f, string(d.sampler.Overviews), a, m)
	if overview == nil {
		return a, m, err
	}
	mapping, err := pixels.OnGround(window, overview)
	return *overview, mapping, err
}
