package columns

import (
	"context"

	loaded "github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/build"
)

// Array implements build.Shards.Array: all pixels of a raster, by band, row and column.
func Array(ctx context.Context, o source.Opener, row *build.Row) (*build.Array, error) {
	array, err := loaded.Read(ctx, []string{name}, loaded.ReadOptions{MaxBytes: maxRasterBytes,
		Options: resources.Options{Opener: rowOpener{o, row}}})
	if err != nil {
		return nil, bare(err)
	}
	return &build.Array{DType: array.DType, Shape: array.Shape, Data: array.Data, Release: array.Release}, nil
}
