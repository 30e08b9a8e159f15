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
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/tiledb"
	"github.com/chaski-eo/chaski/store/zarr"
)

// Kind is what a path leads to: an entry of the list kinds, or Other.
type Kind struct {
	noun string
	// named reports whether a remote path has the name of this kind: it is asked for first, and the others only if
	// it is not.
	named func(source.Path) bool
	// is looks at the names and first bytes of files.
	is func(context.Context, source.Opener, source.Path) bool
}

// The kinds.
var (
	TileDB    = &Kind{"a TileDB array", func(source.Path) bool { return false }, tiledb.Is}
	Zarr      = &Kind{"a Zarr array or group", zarr.Named, zarr.Is}
	Container = &Kind{"a container", taco.Named, taco.Is}
	// Other is all that is no store by itself: a raster, a table, a directory of files, a pattern, or nothing.
	Other = &Kind{noun: "another file or directory"}
)

// kinds are all but Other. A new one is one entry here, and one in each list of what is done with a kind: openers
// (loader/rows), describers (loader/survey) and checks (ops/verify).
var kinds = [...]*Kind{TileDB, Zarr, Container}

// String names the kind for people, such as "a container".
func (k *Kind) String() string { return k.noun }

// Of returns what a path leads to. The name of a raster or a table decides without a request, and so does a remote
// path into a container (CONTAINER::PATH). A directory that is two things at once, such as one with the metadata of
// both Zarr and TileDB, is fault.Unsupported. What cannot be opened is Other: opening it has the better error.
func Of(ctx context.Context, o source.Opener, uri string) (*Kind, error) {
	p, err := source.Parse(uri)
	if err != nil {
		return Other, nil
	}
	name := p.Base()
	class := magic.Named(name).Class
	// Containers have the extension of a table in JSON, too.
	file := class.Pixels() || class.Table() && !strings.EqualFold(path.Ext(name), ".json")
	_, _, inside := source.Split(p.Name)
	switch {
	case p.Remote() && (inside || file):
		return Other, nil
	case !p.Remote() && file:
		if st, err := source.RootsOf(o).Stat(p.Local()); err != nil || !st.IsDir() {
			return Other, nil
		}
	}
	candidates := make([]*Kind, 0, len(kinds))
	for _, kind := range kinds {
		switch named := p.Remote() && kind.named(p); {
		case !named:
			candidates = append(candidates, kind)
		case kind.is(ctx, o, p):
			return kind, nil
		}
	}
	// Each question may be a request, so that they are asked at the same time.
	found := make([]bool, len(candidates))
	var group errgroup.Group
	for i, kind := range candidates {
		group.Go(func() error {
			found[i] = kind.is(ctx, o, p)
			return nil
		})
	}
	_ = group.Wait()
	if err := ctx.Err(); err != nil {
		return Other, err
	}
	result := Other
	for i, kind := range candidates {
		switch {
		case !found[i]:
		case result == Other:
			result = kind
		case result == Zarr && strings.EqualFold(path.Ext(name), ".zip"): // all ZIPs begin like containers
		default:
			return Other, fault.WithFile(fault.New(fault.Unsupported, "dataset", fault.NoOffset,
				"is %v and %v at once: move one of them to a directory of its own", result, kind), uri)
		}
	}
	if class == magic.Store && !p.Remote() {
		if st, err := source.RootsOf(o).Stat(p.Local()); err == nil && st.Mode().IsRegular() { // a ZIP, maybe a bad one
			result = Zarr
		}
	}
	icechunk := pathname.Join(p.Local(), "snapshots/1CECHNKREP0F1RSTCMT0") // the first snapshot of each of its stores
	if _, err := source.RootsOf(o).Stat(icechunk); err == nil && result == Other && !p.Remote() {
		return Other, fault.WithFile(fault.New(fault.Unsupported, "dataset", fault.NoOffset,
			"is an Icechunk store, which is not read: copy it to Zarr"), uri)
	}
	return result, nil
}

// Is reports whether a path leads to a kind, and to no other one.
func Is(ctx context.Context, o source.Opener, uri string, k *Kind) bool {
	found, err := Of(ctx, o, uri)
	return err == nil && found == k
}
