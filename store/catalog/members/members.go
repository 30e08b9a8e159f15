// Package members finds the rasters inside containers, for catalogs of them.
package members

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/catalog/build"
	"github.com/chaski-eo/chaski/store/taco"
)

// Of returns the rasters in the container at path. It ignores samples whose ids have an extension
// that is not one of rasters. It returns nil if path is not a container.
func Of(ctx context.Context, files source.Opener, path string) ([]build.Member, error) {
	class := magic.Named(path).Class
	named := class == magic.Container || strings.EqualFold(filepath.Ext(path), ".zip")
	// Remote paths are judged by their extension alone, because opening each costs a request.
	if class == magic.Raster || !named && source.IsRemote(path) {
		return nil, nil
	}
	kind, err := store.Of(ctx, files, path)
	if _, ok := kind.(store.Lists); err != nil || !ok {
		return nil, err
	}
	dataset, err := taco.Open(ctx, files, []string{path}, taco.Options{})
	if err != nil {
		return nil, err
	}
	defer dataset.Close()
	members := []build.Member{}
	known := map[string]source.Known{}
	for sample, err := range dataset.Leaves(ctx, false) {
		if err != nil {
			return nil, err
		}
		if !isRaster(sample.ID) {
			continue
		}
		// The catalog has the size and the ETag of the file around the sample, so it can tell that the file
		// changed.
		object := source.Known{}
		if sample.Offset != store.Whole {
			if object, err = knownOf(ctx, files, sample.URI, known); err != nil {
				return nil, err
			}
		}
		members = append(members, build.Member{
			File: sample.URI, Path: sample.Path, Offset: sample.Offset, Length: sample.Size, Known: object,
			Open: func(ctx context.Context) (source.Reader, error) { return sample.Open(ctx, files) },
		})
	}
	return members, nil
}

// isRaster reports whether a sample is a raster by its id.
func isRaster(id string) bool { return filepath.Ext(id) == "" || magic.Named(id).Class == magic.Raster }

// knownOf opens a file, once, to learn its size and tag.
func knownOf(ctx context.Context, files source.Opener, uri string,
	known map[string]source.Known) (source.Known, error) {
	if k, ok := known[uri]; ok {
		return k, nil
	}
	file, err := files.Open(ctx, uri)
	if err != nil {
		return source.Known{}, fault.WithFile(err, uri)
	}
	known[uri] = source.Known{Size: file.Size(), ETag: source.ETag(file)}
	return known[uri], file.Close()
}
