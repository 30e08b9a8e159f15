package open

import (
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/tiledb"
)

// Array opens a TileDB array, with the key that the environment names if there is one.
func Array(ctx context.Context, files source.Opener, path string, o tiledb.Options) (*tiledb.Array, error) {
	var err error
	if o.Key, err = tiledb.KeyFromEnv(); err != nil {
		return nil, err
	}
	a, err := tiledb.Open(ctx, files, path, o)
	return a, fault.WithFile(err, path)
}
