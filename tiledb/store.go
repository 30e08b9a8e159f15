package tiledb

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
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

// Folders implements Store. Links to folders count.
func (f *Files) Folders(_ context.Context, uri string) ([]string, error) {
	path := strings.TrimPrefix(uri, "file://")
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
			dir = err == nil && st.IsDir()
		}
		if dir {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// IsArray reports whether a local folder holds an array.
func IsArray(path string) bool {
	st, err := os.Stat(filepath.Join(strings.TrimPrefix(path, "file://"), schemaName))
	return err == nil && st.Mode().IsRegular()
}
