package raster

import (
	"cmp"
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/catalog"
)

// One opens the one raster that a name leads to: a file, the image of a Zarr store, a path in a container or the cell
// of a table (CONTAINER::PATH), or a byte range as store.Entry.VSI names it. A local file of that very name takes
// precedence. For remote names the container is tried first, because asking for the file takes a request. o must have
// its defaults.
func One(ctx context.Context, o resources.Options, name string) (catalog.Asset, error) {
	switch {
	case !inside(name), store.Inside(name):
		return oneFile(ctx, o, name)
	case source.IsRemote(name):
		asset, err := oneMember(ctx, o, name)
		if fault.KindOf(err) == fault.NotFound {
			if file, ferr := oneFile(ctx, o, name); ferr == nil {
				return file, nil
			}
		}
		return asset, err
	}
	asset, err := oneFile(ctx, o, name)
	if fault.KindOf(err) == fault.NotFound {
		return oneMember(ctx, o, name)
	}
	return asset, err
}

// inside reports whether a name may stand for a path in a container, or for a byte range.
func inside(name string) bool {
	_, _, in := source.Split(name)
	_, _, _, part := source.Subfile(name)
	return in || part
}

// oneMember opens a raster in a container or in a cell of a table, or a byte range. A path that the container does not
// have is fault.NotFound.
func oneMember(ctx context.Context, o resources.Options, name string) (a catalog.Asset, err error) {
	if uri, path, inside := source.Split(name); inside && catalog.HasCells(uri) {
		return catalog.OpenCell(ctx, o.Opener, uri, path, o.MaxChunkBytes)
	}
	err = store.ErrNoContainers
	for _, kind := range store.Find[rows.Members]() {
		if a, err = kind.Member(ctx, o, name); fault.KindOf(err) != fault.NotFound {
			break
		}
	}
	return a, err
}

// oneFile opens a raster file, or the image of a Zarr store.
func oneFile(ctx context.Context, o resources.Options, path string) (a catalog.Asset, err error) {
	if path, err = o.Resolve(path); err != nil {
		return a, err
	}
	kind, err := store.Of(ctx, o.Opener, path)
	if err != nil {
		return a, err
	}
	several, isSeveral := kind.(store.Several)
	if arrays, ok := kind.(store.Arrays); ok && !isSeveral {
		return rows.Image(ctx, arrays, path, o)
	}
	a, err = catalog.OpenSmall(ctx, o.Opener, path, source.Known{}, chunk.Axes{}, o.MaxChunkBytes)
	if k := fault.KindOf(err); k == fault.Corrupt || k == fault.Unsupported {
		err = cmp.Or(errNotOneRaster(kind, several, path), err)
	}
	return a, err
}

// errNotOneRaster returns the error for a path that holds several rasters: a store or a table. It returns nil for any
// other path.
func errNotOneRaster(kind store.Kind, several store.Several, path string) error {
	what := ""
	switch {
	case catalog.HasCells(path):
		what = "is a table; the rasters in its cells are called " + source.Name(path) + "::ROW/COLUMN"
	case several != nil:
		what = "is " + kind.String() + "; " + several.Usage(source.Name(path))
	default:
		return nil
	}
	return fault.WithFile(fault.New(fault.Unsupported, "file", "%s", what), path)
}
