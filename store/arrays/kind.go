package arrays

import (
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store"
)

// Register registers a kind of stores that are groups of arrays, and returns it. k has the names of such stores, and
// recognises them; open opens the one at a path.
func Register(k store.Kind, open func(context.Context, source.Opener, string, Options) (*Node, error)) *store.Kind {
	within := func(ctx context.Context, o source.Opener, uri string, l store.Limits) (*Node, error) {
		return open(ctx, o, uri, Options{MaxChunk: l.MaxChunk, MaxIndexes: l.MaxIndexes, MaxMeta: l.MaxMeta})
	}
	k.Inside = true
	k.Raster = func(ctx context.Context, o source.Opener, uri, field, array, dims string, l store.Limits) (store.Raster,
		error) {
		node, err := within(ctx, o, uri, l)
		if err != nil {
			return nil, err
		}
		raster, err := node.Raster(ctx, field, array, dims)
		if err != nil {
			return nil, err
		}
		return storeImages{raster, node}, nil
	}
	k.Labels = func(ctx context.Context, o source.Opener, uri, name string, single bool, l store.Limits) (store.Labels,
		error) {
		node, err := within(ctx, o, uri, l)
		if err != nil {
			return nil, err
		}
		if single && !node.IsLabel(ctx, name) {
			return nil, fault.WithFile(fault.New(fault.NotFound, "column "+name, "no labels of this name"), uri)
		}
		return node.Labels(ctx, name)
	}
	k.Arrays = func(ctx context.Context, o source.Opener, uri string, l store.Limits) ([]string, error) {
		node, err := within(ctx, o, uri, l)
		if err != nil {
			return nil, err
		}
		return node.ArrayPaths(ctx)
	}
	k.Verify = func(ctx context.Context, c *store.Check, path string) error {
		node, err := open(ctx, c.Opener, path, Options{MaxChunk: int64(c.MaxChunk)})
		if err != nil {
			return err
		}
		return node.check(ctx, c, path)
	}
	return store.Register(&k)
}

// storeImages are the images of a store as store.Raster.
type storeImages struct {
	*Raster
	node *Node
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
