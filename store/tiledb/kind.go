package tiledb

import (
	"context"

	"github.com/chaski-eo/chaski/store"
)

// Kind is the kind of the paths of arrays.
var Kind = store.Register(&store.Kind{
	Noun: "a TileDB array", Is: Is, Times: true, Verify: check,
	Usage: "whose boxes 'chaski array' reads; loaders read its images",
})

// check implements store.Kind.Verify: it decodes every tile of every fragment.
func check(ctx context.Context, c *store.Check, path string) error {
	c.Arrays++
	array, err := Open(ctx, c.Opener, path, Options{Key: c.Key, MaxTile: int64(c.MaxChunk)})
	if err != nil {
		return err
	}
	checked, err := array.Verify(ctx)
	c.Chunks += checked.Tiles
	c.Bytes += checked.Bytes
	return err
}
