package catalog

import (
	"context"
	"path"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

// isURL reports whether a URI is one of HTTP, which knows no folders, and in which what follows "?" is not part
// of the path.
func isURL(uri string) bool {
	s := scheme(uri)
	return s == "http" || s == "https"
}

// extension returns that of a path or URI, in lower case.
func extension(uri string) string {
	if isURL(uri) {
		uri, _, _ = strings.Cut(uri, "?")
	}
	return strings.ToLower(path.Ext(uri[strings.LastIndexByte(uri, '/')+1:]))
}

// remoteGlob reports whether a remote URI is a pattern. One of HTTP is not: it cannot be listed, and may have a "?".
func remoteGlob(uri string) bool { return !isURL(uri) && hasMeta(uri) }

// listRemote lists what a remote URI names: a raster file, a glob, or a folder, for which the store must have a
// listing.
func listRemote(ctx context.Context, src string, r *roots, o source.Opener) (*listing, error) {
	base, pattern := splitGlob(src)
	if err := r.check(base); err != nil {
		return nil, err
	}
	if pattern == nil {
		switch extension(src) {
		case ".tif", ".tiff", ".rumi":
			return remoteFile(ctx, src, o)
		}
	}
	if err := checkPattern(pattern); err != nil {
		return nil, err
	}
	l := &listing{base: base}
	err := source.List(ctx, o, base, func(e source.Entry) error {
		if hidden(e.Path) || !isRaster(e.Path) || pattern != nil && !matchParts(pattern, strings.Split(e.Path, "/")) {
			return nil
		}
		l.paths, l.sizes, l.etags = append(l.paths, e.Path), append(l.sizes, e.Size), append(l.etags, e.ETag)
		return nil
	})
	if err == nil && len(l.paths) == 0 {
		err = fault.New(fault.NotFound, "listing", fault.NoOffset, "no raster files")
	}
	if err != nil {
		return nil, fault.WithFile(err, src)
	}
	l.sort()
	return l, nil
}

// remoteFile is the listing of one file. It costs the request that opens it.
func remoteFile(ctx context.Context, src string, o source.Opener) (*listing, error) {
	f, err := o.Open(ctx, src)
	if err != nil {
		return nil, fault.WithFile(err, src)
	}
	l := &listing{base: folder(src), sizes: []int64{f.Size()}, etags: []string{source.ETag(f)}}
	l.paths = []string{strings.TrimPrefix(src[len(l.base):], "/")}
	return l, f.Close()
}

// splitGlob returns the folder that a remote glob starts at, and the parts of the path below it; or the URI
// without a "/" at its end, and nil.
func splitGlob(uri string) (base string, pattern []string) {
	if !remoteGlob(uri) {
		if rest := strings.TrimRight(uri, "/"); !strings.HasSuffix(rest, ":") {
			return rest, nil
		}
		return uri, nil
	}
	parts := strings.Split(uri, "/")
	fixed := 3 // "s3:", "", "bucket"
	for fixed < len(parts) && !hasMeta(parts[fixed]) {
		fixed++
	}
	fixed = min(fixed, len(parts))
	return strings.Join(parts[:fixed], "/"), parts[fixed:]
}

// hidden reports whether a part of a path begins with ".".
func hidden(p string) bool { return strings.HasPrefix(p, ".") || strings.Contains(p, "/.") }
