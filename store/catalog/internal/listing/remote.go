package listing

import (
	"context"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
)

// MayGlob reports whether a path or URI is a pattern, unless a file has that name. A URI of HTTP is not: it cannot be
// listed, and may have a "?". Nor is a part of a file.
func MayGlob(uri string) bool { return !source.IsWeb(uri) && !source.IsPart(uri) && IsGlob(uri) }

// listRemote lists a remote URI: a raster file, a glob, or a directory of a store that can list.
func listRemote(ctx context.Context, src string, r *openers.Roots, o source.Opener, wanted Files) (*Listing, error) {
	base, pattern := splitGlob(src)
	if _, err := r.Allow(base); err != nil {
		return nil, err
	}
	if pattern == nil && magic.Named(source.Name(src)).Class.Pixels() {
		return remoteFile(ctx, src, o)
	}
	var m *globMatcher
	if pattern != nil {
		err := checkLength(src)
		if err == nil {
			m, err = newMatcher(pattern)
		}
		if err != nil {
			return nil, err
		}
	}
	listing := &Listing{Base: base, Roots: r, files: wanted}
	if err := listing.objects(ctx, o, base, "", m); err != nil {
		return nil, fault.WithFile(err, src)
	}
	if again := listing.instead(); again != Rasters && pattern == nil {
		return again.only(listRemote(ctx, src, r, o, again))
	}
	if len(listing.Paths)+len(listing.Shards)+len(listing.Metadata) == 0 && listing.unread == "" {
		return nil, fault.WithFile(fault.New(fault.NotFound, "listing", "no raster files"), src)
	}
	return listing.done(ctx, src)
}

// objects adds the objects that count of a folder that an opener lists, by their paths after a prefix, and match a glob
// (nil: all). The objects of a tar, which have a prefix, have no tags.
func (l *Listing) objects(ctx context.Context, o source.Opener, folder, prefix string, pattern *globMatcher) error {
	matches := func(path string) bool {
		if pattern == nil {
			return true
		}
		whole, _ := pattern.match(path)
		return whole
	}
	stores := map[string]bool{} // of which an object was seen
	return openers.List(ctx, o, folder, func(e source.Entry) error {
		path := prefix + e.Path
		if store := storeOf(e.Path); store != "" && l.files&AllFiles == 0 && matches(prefix+store) {
			if stores[store] {
				return nil
			}
			if stores[store] = true; store != e.Path {
				e, path = source.Entry{Path: store}, prefix+store
			}
		}
		if strings.HasPrefix(e.Path, ".") || strings.Contains(e.Path, "/.") { // hidden
			return nil
		}
		l.seeBeside(folder+"/"+e.Path, e.Path[strings.LastIndexByte(e.Path, '/')+1:])
		tables := len(l.Shards) + len(l.Metadata)
		keep := matches(path) && l.counts(path)
		if Outside(path) && (keep || len(l.Shards)+len(l.Metadata) > tables) {
			return fault.New(fault.Unsupported, "listing", "%q is no path below %q: rename it", path, folder)
		}
		if !keep {
			return nil
		}
		l.Paths, l.Sizes = append(l.Paths, path), append(l.Sizes, e.Size)
		if prefix == "" {
			l.Etags = append(l.Etags, e.ETag)
		}
		return l.charge(ctx, false)
	})
}

// storeOf returns the path of the store that an object is or lies in, or "".
func storeOf(object string) string {
	for i := range len(object) + 1 {
		if (i == len(object) || object[i] == '/') && magic.Named(object[:i]).Folder {
			return object[:i]
		}
	}
	return ""
}

// remoteFile returns the listing of one file. It costs the request that opens it.
func remoteFile(ctx context.Context, src string, o source.Opener) (*Listing, error) {
	file, err := o.Open(ctx, src)
	if err != nil {
		return nil, fault.WithFile(err, src)
	}
	l := &Listing{Base: Folder(src), Sizes: []int64{file.Size()}, Etags: []string{source.ETag(file)}}
	l.Paths = []string{strings.TrimPrefix(src[len(l.Base):], "/")}
	return l, file.Close()
}

// splitGlob returns the directory that a remote glob starts at, and the parts of the path below it. For another URI it
// returns the URI without the "/" at its end, and nil.
func splitGlob(uri string) (base string, pattern []string) {
	if !MayGlob(uri) {
		if rest := strings.TrimRight(uri, "/"); !strings.HasSuffix(rest, ":") {
			return rest, nil
		}
		return uri, nil
	}
	parts := strings.Split(uri, "/")
	fixed := 3 // "s3:", "", "bucket"
	for fixed < len(parts) && !IsGlob(parts[fixed]) {
		fixed++
	}
	fixed = min(fixed, len(parts))
	return strings.Join(parts[:fixed], "/"), parts[fixed:]
}
