package catalog

import (
	"context"
	"errors"
	"strings"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/rumi"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/tiff"
)

// Overviews returns the indexes of the overviews of a raster, from the largest to the smallest, with their masks. x is
// the index of the raster itself, which r holds. Only TIFF files have overviews of their own;
// OverviewFile reads those beside a file.
func Overviews(ctx context.Context, r source.Reader, x *chunk.Index, maxChunk int) ([]*chunk.Index, error) {
	if FormatOf(ctx, r).Class == magic.Picture {
		return nil, nil
	}
	file, err := rumi.Open(ctx, r, tiff.Limits{}.IFD())
	if err != nil || rumi.Is(ctx, file) {
		return nil, err
	}
	return tiff.OpenOverviews(ctx, file, x, tiff.Limits{MaxChunk: maxChunk})
}

// OverviewFile opens the file of overviews beside the raster at uri, NAME.ovr, as GDAL finds it: a TIFF whose images
// are overviews. It returns the file as an asset with the index of its first image, and the indexes of all of
// them, from the largest to the smallest, with their masks. The list is empty if the file does not exist or the store
// refuses it: stores that do not list their objects also refuse those that do not exist. x is the index of the raster.
// Errors name the file of overviews.
func OverviewFile(ctx context.Context, o source.Opener, uri string, x *chunk.Index, maxChunk int) (a Asset,
	levels []*chunk.Index, err error) {
	a.URI = besideURI(uri)
	file, err := o.Open(ctx, a.URI)
	if fault.KindOf(err) == fault.NotFound || source.IsDenied(err) {
		return a, nil, nil
	}
	if err != nil {
		return a, nil, fault.WithFile(err, a.URI)
	}
	defer func() { err = errors.Join(fault.WithFile(err, a.URI), file.Close()) }()
	if FormatOf(ctx, file).Class != magic.Raster {
		return a, nil, fault.New(fault.Unsupported, "header", 0, "a file of overviews that is no TIFF")
	}
	f, err := rumi.Open(ctx, file, tiff.Limits{}.IFD())
	if err != nil {
		return a, nil, err
	}
	if levels, err = tiff.OpenOverviewFile(ctx, f, x, tiff.Limits{MaxChunk: maxChunk}); err != nil {
		return a, nil, err
	}
	side, _, err := readAsset(ctx, file, maxChunk)
	a.Index, a.Size, a.ETag = side.Index, side.Size, source.ETag(file)
	if t, ok := file.(source.Timed); ok {
		a.MTime = t.ModTime()
	}
	return a, levels, err
}

// besideURI returns the URI of the file of overviews beside a raster. The query of a URL stays behind the path.
func besideURI(uri string) string {
	const ext = ".ovr"
	if path, query, ok := strings.Cut(uri, "?"); ok && source.IsRemote(uri) {
		return path + ext + "?" + query
	}
	return uri + ext
}
