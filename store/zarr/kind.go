package zarr

import (
	"context"

	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store"
)

// Kind is the kind of the paths of arrays and groups.
var Kind = store.Register(&store.Kind{
	Noun: "a Zarr array or group", Named: Named, Is: Is, Files: magic.Zarr, Inside: true, Raster: openRaster,
	Arrays: arrays, Verify: check,
})

// storeImages are the images of a store as store.Raster.
type storeImages struct {
	*Raster
	node *Node
}

// openRaster implements store.Kind.Raster.
func openRaster(ctx context.Context, o source.Opener, uri, field, array, dims string, l store.Limits) (
	store.Raster, error) {
	node, err := Open(ctx, o, uri, Options{MaxChunk: l.MaxChunk, MaxIndexes: l.MaxIndexes, MaxMeta: l.MaxMeta})
	if err != nil {
		return nil, err
	}
	return node.Images(ctx, field, array, dims)
}

// arrays implements store.Kind.Arrays.
func arrays(ctx context.Context, o source.Opener, uri string, l store.Limits) ([]string, error) {
	node, err := Open(ctx, o, uri, Options{MaxChunk: l.MaxChunk, MaxIndexes: l.MaxIndexes, MaxMeta: l.MaxMeta})
	if err != nil {
		return nil, err
	}
	return node.ArrayPaths(ctx)
}

// Images is Raster as a store has it.
func (n *Node) Images(ctx context.Context, field, array, dims string) (store.Raster, error) {
	raster, err := n.Raster(ctx, field, array, dims)
	if err != nil {
		return nil, err
	}
	return storeImages{raster, n}, nil
}

// URI implements store.Raster.
func (i storeImages) URI() string { return i.Arrays()[0].URI }

// Place implements store.Raster.
func (i storeImages) Place(ctx context.Context) (epsg int, transform *[6]float64) {
	place := i.node.Place(ctx, i.Arrays()[0])
	return place.EPSG, place.Transform
}

// Held implements store.Raster.
func (i storeImages) Held() (int64, error) { return i.node.Held(), i.node.Full() }
