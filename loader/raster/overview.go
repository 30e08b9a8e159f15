package raster

import (
	"context"
	"fmt"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/store/catalog"
)

// atOverview returns an overview of an asset, from 0, as an asset: the same file, or the file of the overviews beside
// it, with another index. It fails with kind not found if the overviews end before this number.
func atOverview(ctx context.Context, o resources.Options, a catalog.Asset, level int) (catalog.Asset, error) {
	levels, err := pixels.Overviews(ctx, o, a)
	if err != nil {
		return a, err
	}
	if level < 0 || level >= len(levels.Indexes) {
		has := "no overviews"
		if n := len(levels.Indexes); n > 0 {
			has = fmt.Sprintf("overviews 0 to %d", n-1)
		}
		return a, fault.New(fault.NotFound, "overview", "there is no number %d: the raster has %s", level, has)
	}
	a = pixels.AtOverview(a, levels, level)
	a.Place = nil // it belongs to the raster, whose pixels are smaller
	return a, nil
}
