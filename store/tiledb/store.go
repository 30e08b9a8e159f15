package tiledb

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

// Store is where arrays lie: files that can be opened and folders that can be listed. It is safe for
// concurrent use. URIs are joined with slashes.
type Store interface {
	source.Opener
	// Folders returns the names of the folders in a folder, in any order. A folder that does not exist is
	// fault.NotFound.
	Folders(ctx context.Context, uri string) ([]string, error)
}

// Files is the Store of local files, by path or file:// URI. The zero value is ready; Close it when it
// is not needed any more.
type Files struct{ source.Files }

// Folders implements Store. Links to folders count; one that is called like a fragment and leads nowhere is fault.Corrupt, since
// what it led to is missing.
func (f *Files) Folders(_ context.Context, uri string) ([]string, error) {
	path := source.LocalPath(uri)
	list, err := os.ReadDir(path)
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
			st, err := os.Stat(filepath.Join(path, e.Name()))
			if _, _, other := parseName(e.Name()); err != nil && other == nil {
				return nil, fault.WithFile(fault.New(fault.Corrupt, "link", fault.NoOffset, "it leads nowhere, and is called like a fragment: %v", err), uri+"/"+e.Name())
			}
			dir = err == nil && st.IsDir()
		}
		if dir {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Over is the Store of what an opener opens: local folders, object stores that can be listed, where a folder is what
// names have in front of a slash, and web servers whose page about a folder names what lies in it (source.Namer).
type Over struct{ source.Opener }

// OpenKnown implements source.KnownOpener.
func (o Over) OpenKnown(ctx context.Context, uri string, k source.Known) (source.Reader, error) {
	return source.OpenKnown(ctx, o.Opener, uri, k)
}

// Folders implements Store.
func (o Over) Folders(ctx context.Context, uri string) ([]string, error) {
	if !source.IsRemote(uri) {
		var f Files
		return f.Folders(ctx, uri)
	}
	names, err := source.Names(ctx, o.Opener, uri)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(names, schemaName) {
		return nil, fault.WithFile(fault.New(fault.Unsupported, "listing", fault.NoOffset, "it is none of the array's folder: %s is not in it", schemaName), uri)
	}
	var folders []string
	seen := map[string]bool{}
	for _, name := range names {
		folder, is := strings.CutSuffix(name, "/")
		if !is { // links written by hand may have no slash; no file of an array is called like a fragment
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

// Is reports whether an array lies at a URI. For a remote one the schema is opened.
func Is(ctx context.Context, o source.Opener, uri string) bool {
	if !source.IsRemote(uri) {
		return IsArray(uri)
	}
	r, err := o.Open(ctx, strings.TrimSuffix(uri, "/")+"/"+schemaName)
	if err != nil {
		return false
	}
	return r.Close() == nil
}

// IsArray reports whether a local folder holds an array, of this format version or a later one, which Open refuses.
func IsArray(path string) bool {
	path = source.LocalPath(path)
	if st, err := os.Stat(filepath.Join(path, schemaName)); err == nil && st.Mode().IsRegular() {
		return true
	}
	st, err := os.Stat(filepath.Join(path, laterSchemas))
	return err == nil && st.IsDir()
}
