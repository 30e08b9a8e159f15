package catalog

import (
	"context"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/picture"
	"github.com/chaski-eo/chaski/rumi"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/tiff"
)

// Overviews returns the indexes of the overviews of a raster, from the largest to the smallest, with their masks. x is
// the index of the raster itself, which r holds. Only TIFF files have overviews; those beside a file (.ovr) are
// ignored.
func Overviews(ctx context.Context, r source.Reader, x *chunk.Index, maxChunk int) ([]*chunk.Index, error) {
	if startsWith(ctx, r, picture.Magics[:]...) {
		return nil, nil
	}
	f, err := rumi.Open(ctx, r, tiff.Limits{}.IFD())
	if err != nil || rumi.Is(ctx, f) {
		return nil, err
	}
	return tiff.OpenOverviews(ctx, f, x, tiff.Limits{MaxChunk: maxChunk})
}
