// Package store says what a path is. A path may lead to many rasters at once: to a TileDB array, to a Zarr array or
// group, or to a container of one of its generations. The list kinds has an entry for each of these. All that opens
// paths asks Of, so that training, verifying and describing a path never read different things.
package store

import (
	"context"
	"path"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/tiledb"
	"github.com/chaski-eo/chaski/store/zarr"
)

// Kind is what a path leads to.
type Kind uint8

// The kinds.
const (
	// Other is all that is no store by itself: a raster, a table, a directory of files, a pattern, or nothing.
	Other Kind = iota
	TileDB
	Zarr
	Container
)

// kind says how a path of one kind is recognised.
type kind struct {
	noun string
	// named reports whether a remote path has the name of this kind: it is asked for first, and the others only if
	// it is not.
	named func(uri string) bool
	// is looks at the names and first bytes of files.
	is func(ctx context.Context, o source.Opener, uri string) bool
}

// kinds has the entries of all kinds but Other.
var kinds = [...]kind{
	TileDB:    {"a TileDB array", func(string) bool { return false }, tiledb.Is},
	Zarr:      {"a Zarr array or group", zarr.Named, zarr.Is},
	Container: {"a container", taco.Named, taco.Is},
}

// String names the kind for people, such as "a container".
func (k Kind) String() string {
	if k == Other {
		return "another file or directory"
	}
	return kinds[k].noun
}

// Of returns what a path leads to. The name of a raster or a table decides without a request, and so does a remote
// path into a container (CONTAINER::PATH). A directory that is two things at once, such as one with the metadata of
// both Zarr and TileDB, is fault.Unsupported. What cannot be opened is Other: opening it has the better error.
func Of(ctx context.Context, o source.Opener, uri string) (Kind, error) {
	if decided(o, uri) {
		return Other, nil
	}
	candidates := make([]Kind, 0, len(kinds))
	for k := Other + 1; int(k) < len(kinds); k++ {
		named := source.IsRemote(uri) && kinds[k].named(uri)
		if named && kinds[k].is(ctx, o, uri) {
			return k, nil
		}
		if !named { // else it was asked for
			candidates = append(candidates, k)
		}
	}
	// Each question may be a request, so that they are asked at the same time.
	found := make([]bool, len(candidates))
	var group errgroup.Group
	for i, k := range candidates {
		group.Go(func() error {
			found[i] = kinds[k].is(ctx, o, uri)
			return nil
		})
	}
	_ = group.Wait()
	if err := ctx.Err(); err != nil {
		return Other, err
	}
	result := Other
	for i, k := range candidates {
		switch {
		case !found[i]:
		case result == Other:
			result = k
		default:
			return Other, fault.WithFile(fault.New(fault.Unsupported, "dataset", fault.NoOffset,
				"is %v and %v at once: move one of them to a directory of its own", result, k), uri)
		}
	}
	return result, nil
}

// Is reports whether a path leads to a kind, and to no other one.
func Is(ctx context.Context, o source.Opener, uri string, k Kind) bool {
	found, err := Of(ctx, o, uri)
	return err == nil && found == k
}

// decided reports whether the name of a path alone says that it is Other.
func decided(o source.Opener, uri string) bool {
	if !source.IsRemote(uri) {
		st, err := source.RootsOf(o).Stat(source.LocalPath(uri))
		return (err != nil || !st.IsDir()) && endsLikeFile(uri)
	}
	_, _, inside := taco.Split(uri)
	return inside || endsLikeFile(uri)
}

// endsLikeFile reports whether a name has the extension of rasters or tables. JSON's does not count, which
// containers and references of Zarr have, too.
func endsLikeFile(uri string) bool {
	name := source.Name(uri)
	class := magic.Named(name).Class
	return class.Pixels() || class.Table() && !strings.EqualFold(path.Ext(name), ".json")
}
