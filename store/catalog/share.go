package catalog

import (
	"context"
	"os"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog/internal/listing"
)

// Share returns a context in which Open lists each directory or glob once. It is for the datasets of one run, opened
// with one opener: a mixture may name a directory many times.
func Share(ctx context.Context) context.Context { return listing.Share(ctx) }

// Glob returns the raster files that a pattern matches, sorted, as Open reads them. A path is returned as it is if it
// has no characters of a pattern, if there is such a file, or if nothing matches: members of archives may have such
// names.
func Glob(ctx context.Context, o source.Opener, pattern string) (paths []string, err error) {
	globs := listing.RemoteGlob
	if !source.IsRemote(pattern) {
		globs = func(path string) bool {
			_, err := os.Lstat(path)
			return err != nil && listing.IsGlob(path)
		}
	}
	if !globs(pattern) {
		return []string{pattern}, nil
	}
	l, err := listing.List(ctx, pattern, nil, o, false)
	if fault.KindOf(err) == fault.NotFound || err == nil && len(l.Paths) == 0 {
		return []string{pattern}, nil
	}
	if err != nil {
		return nil, err
	}
	for i := range l.Paths {
		paths = append(paths, l.Path(i))
	}
	return paths, nil
}
