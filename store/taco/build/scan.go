package build

import (
	"cmp"
	"context"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/store/taco/internal/taco2"
)

// folderTree makes the folders of samples that paths of ids name, in their order.
type folderTree struct {
	top     *Tortilla
	folders map[string]*Tortilla
}

func newTree() *folderTree {
	top := &Tortilla{}
	return &folderTree{top, map[string]*Tortilla{"": top}}
}

// file adds a sample that is a file.
func (t *folderTree) file(path, file string) { t.add(path, Sample{File: file}) }

// add adds a sample to the folder that its path says.
func (t *folderTree) add(path string, s Sample) {
	cut := max(strings.LastIndexByte(path, '/'), 0)
	s.ID = strings.TrimPrefix(path[cut:], "/")
	above := t.folder(path[:cut])
	above.Samples = append(above.Samples, s)
}

// folder returns the folder at a path. It makes the folder if it does not exist yet. A folder is a sample of the one
// above it.
func (t *folderTree) folder(path string) *Tortilla {
	if folder := t.folders[path]; folder != nil {
		return folder
	}
	folder := &Tortilla{}
	t.folders[path] = folder
	t.add(path, Sample{Children: folder})
	return folder
}

// Scan returns the files of a local directory as samples, and its directories as folders of them, each in the order of
// the bytes of their names, which are the ids. Names that begin with "." are left out, and so are empty directories.
// Links to files are followed; links to directories are fault.Unsupported, because they may lead round in a circle.
//
// The files in skip are left out. Callers that write a container into dir name it there, so that a second run does not
// pack the container of the first.
func Scan(ctx context.Context, dir string, skip ...string) (*Tortilla, error) {
	tree, files := newTree(), os.DirFS(dir)
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err = cmp.Or(err, ctx.Err()); err != nil || path == "." {
			return err
		}
		if strings.HasPrefix(entry.Name(), ".") || skips(skip, entry) {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		mode := entry.Type()
		if mode&fs.ModeSymlink != 0 {
			st, err := fs.Stat(files, path)
			if err != nil {
				return err
			}
			if mode = st.Mode(); mode.IsDir() {
				return badEntry(dir, path, "is a link to a directory")
			}
		}
		switch {
		case mode.IsDir() && strings.Count(path, "/")+1 == taco2.MaxLevels:
			return fault.New(fault.Limit, "folder "+strconv.Quote(pathname.Join(dir, path)), fault.NoOffset,
				"lies more than %d levels deep", taco2.MaxLevels)
		case mode.IsDir():
		case mode.IsRegular():
			tree.file(path, pathname.Join(dir, path))
		default:
			return badEntry(dir, path, "is neither a file nor a directory")
		}
		return nil
	})
	if err == nil && len(tree.top.Samples) == 0 {
		err = fault.New(fault.NotFound, "folder", fault.NoOffset, "has no files")
	}
	return tree.top, fault.WithFile(err, dir)
}

// badEntry returns an error about a file of a directory.
func badEntry(dir, path, what string) error {
	return unsupported("file "+strconv.Quote(pathname.Join(dir, path)), "%s", what)
}

// skips reports whether a file is one of those that are left out. They need not exist yet.
func skips(names []string, entry fs.DirEntry) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		not, err := os.Lstat(name)
		if err != nil {
			return false
		}
		st, err := entry.Info()
		return err == nil && os.SameFile(st, not)
	})
}
