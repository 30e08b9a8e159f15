package tiledb

import (
	"context"
	"encoding/binary"
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
	// Names returns the names of the entries of a directory, in any order. Names of directories end
	// in "/". If it does not exist, the error is fault.NotFound, or there are no names.
	Names(ctx context.Context, uri string) ([]string, error)
}

// Files is the Store of local files, by path or file:// URI. The zero value is ready to use. Close
// it after use.
type Files struct{ source.Files }

// Names implements Store. Links to directories count as such. A link that is named like a fragment
// and leads nowhere is fault.Corrupt, because leaving it out would silently lose cells.
func (f *Files) Names(_ context.Context, uri string) ([]string, error) { return localNames(uri, nil) }

// localNames implements Names of local directories below roots.
func localNames(uri string, roots *source.Roots) ([]string, error) {
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
	for _, entry := range list {
		dir := entry.IsDir()
		if entry.Type()&fs.ModeSymlink != 0 {
			st, err := roots.Stat(pathname.Join(path, entry.Name()))
			if err != nil && isFragmentName(entry.Name()) {
				return nil, fault.WithFile(fault.New(fault.Corrupt, "link", fault.NoOffset,
					"a link named like a fragment leads nowhere: %v", err), uri+"/"+entry.Name())
			}
			dir = err == nil && st.IsDir()
		}
		if name := entry.Name(); dir {
			names = append(names, name+"/")
		} else {
			names = append(names, name)
		}
	}
	return names, nil
}

// isFragmentName reports whether a fragment of any format version may have this name.
func isFragmentName(name string) bool {
	if _, _, err := parseName(name); err == nil {
		return true
	}
	_, _, _, ok := laterName(name)
	return ok
}

// Over is the Store on top of an opener: local directories, object stores that can be listed, in
// which a directory is a name up to a slash, and web servers with an index page for each directory
// (source.Namer).
type Over struct{ source.Opener }

// OpenKnown implements source.KnownOpener.
func (o Over) OpenKnown(ctx context.Context, uri string, k source.Known) (source.Reader, error) {
	return source.OpenKnown(ctx, o.Opener, uri, k)
}

// Names implements Store.
func (o Over) Names(ctx context.Context, uri string) ([]string, error) {
	if !source.IsRemote(uri) {
		return localNames(uri, source.RootsOf(o.Opener))
	}
	names, err := source.Names(ctx, o.Opener, uri)
	if err != nil {
		return nil, err
	}
	// Index pages written by hand may have no slash. Files of an array are never named like a fragment.
	for i, name := range names {
		if isFragmentName(name) || name == schemasDir || name == fragmentsDir || name == commitsDir {
			names[i] = name + "/"
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// isListing reports whether a directory with these entries is an array.
func isListing(names []string) bool {
	return slices.Contains(names, schemaName) || slices.Contains(names, schemasDir+"/")
}

// Is reports whether there is an array at a URI. A remote URI costs the request that opens the
// schema, and one that lists the directory of schemas. A URI with a query is no array, because names
// below it would become part of the query.
func Is(ctx context.Context, o source.Opener, uri string) bool {
	if !source.IsRemote(uri) {
		return isArray(uri, source.RootsOf(o))
	}
	if strings.Contains(uri, "?") {
		return false
	}
	uri = strings.TrimSuffix(uri, "/")
	r, err := o.Open(ctx, uri+"/"+schemaName)
	if err == nil {
		return errors.Join(hasVersion(ctx, r), r.Close()) == nil
	}
	if source.Unreachable(err) {
		return false
	}
	names, err := source.Names(ctx, o, uri+"/"+schemasDir)
	return err == nil && slices.ContainsFunc(names, func(name string) bool {
		_, _, err := parseName(name)
		return err == nil
	})
}

// hasVersion returns an error if a file cannot be a schema, because it does not begin with the version of a format.
// Some servers send a page for every name.
func hasVersion(ctx context.Context, r source.Reader) error {
	const most = 1 << 16 // formats count up: the last one is below 30
	head := make([]byte, 4)
	if err := r.ReadAt(ctx, head, 0); err != nil {
		return err
	}
	if v := binary.LittleEndian.Uint32(head); v == 0 || v > most {
		return errVersion(schemaName, 0, uint64(v))
	}
	return nil
}

// IsArray reports whether a local directory holds an array.
func IsArray(path string) bool { return isArray(path, nil) }

func isArray(path string, roots *source.Roots) bool {
	path = source.LocalPath(path)
	if st, err := roots.Stat(pathname.Join(path, schemaName)); err == nil && st.Mode().IsRegular() {
		return true
	}
	st, err := roots.Stat(pathname.Join(path, schemasDir))
	return err == nil && st.IsDir()
}
