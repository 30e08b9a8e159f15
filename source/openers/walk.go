package openers

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/source"
)

// WalkDir is filepath.WalkDir, but follows symbolic links to directories, including dir itself. fn
// sees such a link as a directory, under the path of the link. Links to files and links that lead
// nowhere stay links. A link to a directory that contains it would never end: fn gets an error of
// kind fault.Unsupported for it.
func WalkDir(dir string, fn fs.WalkDirFunc) error { return (*Roots)(nil).WalkDir(dir, fn) }

// WalkDir is the function WalkDir below the roots. A link that leads out of them stays a link.
func (r *Roots) WalkDir(dir string, fn fs.WalkDirFunc) error {
	info, err := r.Stat(dir)
	if err != nil {
		err = fn(dir, nil, err)
	} else {
		err = r.walkDir(dir, fs.FileInfoToDirEntry(info), nil, fn)
	}
	if errors.Is(err, fs.SkipDir) || errors.Is(err, fs.SkipAll) {
		return nil
	}
	return err
}

// walkDir visits p and everything below it. left are the real directories that contain the links on
// the way to p.
func (r *Roots) walkDir(p string, d fs.DirEntry, left []string, fn fs.WalkDirFunc) error {
	link := false
	if d.Type()&fs.ModeSymlink != 0 {
		if st, err := r.Stat(p); err == nil && st.IsDir() {
			d, link = fs.FileInfoToDirEntry(st), true
		}
	}
	if err := fn(p, d, nil); err != nil || !d.IsDir() {
		if errors.Is(err, fs.SkipDir) && d.IsDir() {
			return nil
		}
		return err
	}
	var entries []fs.DirEntry
	var err error
	if link {
		left, err = r.follow(p, left)
	}
	if err == nil {
		entries, err = r.ReadDir(p)
	}
	if err != nil {
		if err = fn(p, d, err); err != nil {
			if errors.Is(err, fs.SkipDir) {
				return nil
			}
			return err
		}
	}
	for _, e := range entries {
		if err := r.walkDir(pathname.Join(p, e.Name()), e, left, fn); err != nil {
			if errors.Is(err, fs.SkipDir) {
				return nil
			}
			return err
		}
	}
	return nil
}

// follow returns left with the directory of a link appended, or an error if the link leads to one
// of these directories or to a parent of one.
func (r *Roots) follow(link string, left []string) ([]string, error) {
	target, err := r.physical(link)
	if err != nil {
		return nil, err
	}
	folder, err := r.physical(pathname.Dir(link))
	left = append(slices.Clip(left), folder)
	above := strings.TrimSuffix(target, string(filepath.Separator)) + string(filepath.Separator)
	for _, l := range left {
		if l == target || strings.HasPrefix(l, above) {
			return nil, fault.WithFile(fault.New(fault.Unsupported, "link",
				"the symbolic link leads to a directory that contains it"), link)
		}
	}
	return left, err
}

// physical returns a path as an absolute one without links.
func (r *Roots) physical(path string) (string, error) {
	real, err := r.allow(source.Path{Name: path})
	if err == nil {
		real, err = filepath.EvalSymlinks(real)
	}
	if err == nil {
		real, err = filepath.Abs(real)
	}
	return real, err
}
