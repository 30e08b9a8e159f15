// Package visible lists the files below a directory that commands take.
package visible

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
	"github.com/chaski-eo/chaski/source/openers"
)

// Entry is a visible file or directory.
type Entry struct {
	Path string // as commands name it
	Name string // relative to the directory, with "/"
	Size int64  // bytes; of a directory 0
	Dir  bool
}

// Each calls each for every file and directory below a directory, in the order of their names, and follows links. It
// leaves out hidden ones, and directories of remote objects. After fs.SkipDir it leaves out what is in a directory; any
// other error ends it.
func Each(ctx context.Context, o source.Opener, dir string, each func(Entry) error) error {
	if source.IsRemote(dir) {
		return objectsBelow(ctx, o, strings.TrimRight(dir, "/"), each)
	}
	return openers.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		switch {
		case fault.KindOf(err) != 0:
			return err
		case err != nil:
			return folderError(p, err)
		case ctx.Err() != nil:
			return ctx.Err()
		case p == dir:
			return nil
		case strings.HasPrefix(d.Name(), ".") && d.IsDir():
			return fs.SkipDir
		case strings.HasPrefix(d.Name(), "."):
			return nil
		case !d.IsDir() && !d.Type().IsRegular() && d.Type()&fs.ModeSymlink == 0:
			return nil // such as a pipe
		}
		found := Entry{Path: p, Dir: d.IsDir()}
		if found.Name, err = filepath.Rel(dir, p); err != nil {
			return err
		}
		found.Name = filepath.ToSlash(found.Name)
		if st, err := os.Stat(p); err == nil && !found.Dir { // a link may lead nowhere
			found.Size = st.Size()
		}
		return each(found)
	})
}

// folderError returns the error about a file or directory that cannot be listed.
func folderError(path string, err error) error {
	kind := fault.Unsupported
	if errors.Is(err, fs.ErrNotExist) {
		kind = fault.NotFound
	}
	if system, ok := errors.AsType[*fs.PathError](err); ok {
		// The text of the whole error would repeat the path.
		err = system.Err
	}
	return fault.WithFile(fault.Wrap(kind, "file", err), path)
}

func objectsBelow(ctx context.Context, o source.Opener, dir string, each func(Entry) error) error {
	var all []Entry
	err := openers.List(ctx, o, dir, func(e source.Entry) error {
		if !strings.HasPrefix(e.Path, ".") && !strings.Contains(e.Path, "/.") {
			all = append(all, Entry{Path: dir + "/" + e.Path, Name: e.Path, Size: e.Size})
		}
		return nil
	})
	slices.SortFunc(all, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	for i := 0; err == nil && i < len(all); i++ {
		err = each(all[i])
	}
	return err
}
