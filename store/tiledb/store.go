package tiledb

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/source"
)

// Store gives access to the files and directories of arrays. It is safe for concurrent use. URIs
// are joined with slashes.
type Store interface {
	source.Opener
	// Folders returns the names of the directories in a directory, in any order. If it does not
	// exist, the error is fault.NotFound.
	Folders(ctx context.Context, uri string) ([]string, error)
}

// Files is the Store of local files, by path or file:// URI. The zero value is ready to use. Close
// it after use.
type Files struct{ source.Files }

// Folders implements Store. Links to directories count. A link that is named like a fragment and
// leads nowhere is fault.Corrupt, because leaving it out would silently lose cells.
func (f *Files) Folders(_ context.Context, uri string) ([]string, error) { return folders(uri, nil) }

// folders implements Folders of local directories below roots.
func folders(uri string, roots *source.Roots) ([]string, error) {
	path := source.LocalPath(uri)
	list, err := roots.ReadDir(path)
	if err != nil {
		kind := fault.Unsupported
		if errors.Is(err, fs.ErrNotExist) {
			kind = fault.NotFound
		}
		return nil, fault.WithFile(fault.Wrap(kind, "folder", fault.NoOffset, err), uri)
	}
	var names []string
	for _, e := range list {
		dir := e.IsDir()
		if e.Type()&fs.ModeSymlink != 0 {
			st, err := roots.Stat(pathname.Join(path, e.Name()))
			if _, _, other := parseName(e.Name()); err != nil && other == nil {
				return nil, fault.WithFile(fault.New(fault.Corrupt, "link", fault.NoOffset,
					"a link named like a fragment leads nowhere: %v", err), uri+"/"+e.Name())
			}
			dir = err == nil && st.IsDir()
		}
		if dir {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Over is the Store on top of an opener: local directories, object stores that can be listed, in
// which a directory is a name up to a slash, and web servers with an index page for each directory
// (source.Namer).
type Over struct{ source.Opener }

// OpenKnown implements source.KnownOpener.
func (o Over) OpenKnown(ctx context.Context, uri string, k source.Known) (source.Reader, error) {
	return source.OpenKnown(ctx, o.Opener, uri, k)
}

// Folders implements Store.
func (o Over) Folders(ctx context.Context, uri string) ([]string, error) {
	if !source.IsRemote(uri) {
		return folders(uri, source.RootsOf(o.Opener))
	}
	names, err := source.Names(ctx, o.Opener, uri)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(names, schemaName) {
		return nil, fault.WithFile(fault.New(fault.Unsupported, "listing", fault.NoOffset,
			"it is not the listing of an array: %s is missing", schemaName), uri)
	}
	var folders []string
	seen := map[string]bool{}
	for _, name := range names {
		folder, is := strings.CutSuffix(name, "/")
		if !is { // Index pages written by hand may have no slash. Files of an array are never named like a fragment.
			_, _, err := parseName(name)
			is = err == nil || fault.KindOf(err) == fault.Unsupported
		}
		if is && !seen[folder] {
			seen[folder] = true
			folders = append(folders, folder)
		}
	}
	return folders, nil
}

// Is reports whether there is an array at a URI. A remote URI costs the request that opens the
// schema.
func Is(ctx context.Context, o source.Opener, uri string) bool {
	if !source.IsRemote(uri) {
		return isArray(uri, source.RootsOf(o))
	}
	r, err := o.Open(ctx, strings.TrimSuffix(uri, "/")+"/"+schemaName)
	if err != nil {
		return false
	}
	return r.Close() == nil
}

// IsArray reports whether a local directory holds an array, of this format version or of a later
// one, which Open refuses.
func IsArray(path string) bool { return isArray(path, nil) }

func isArray(path string, roots *source.Roots) bool {
	path = source.LocalPath(path)
	if st, err := roots.Stat(pathname.Join(path, schemaName)); err == nil && st.Mode().IsRegular() {
		return true
	}
	st, err := roots.Stat(pathname.Join(path, newerSchemas))
	return err == nil && st.IsDir()
}
