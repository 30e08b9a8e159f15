package convert

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tiledb"
)

// place is a folder that an array appears in, all at once. What is being written lies in a hidden folder beside it,
// and so does, where the system cannot exchange two folders in one step, for a moment the array that another replaces.
type place struct {
	folder   string
	building string // .NAME.new
	replaced string // .NAME.old
}

func placeOf(folder string) *place {
	folder = filepath.Clean(folder)
	dir, name := filepath.Split(folder)
	return &place{folder, filepath.Join(dir, "."+name+".new"), filepath.Join(dir, "."+name+".old")}
}

// begin makes the folder in which the array is written, and returns where in it. What there is already, or a run that was
// broken off has left, is refused, or with overwrite cleaned: then the array is the one from before that run, or its new one.
func (p *place) begin(overwrite bool) (string, error) {
	refuse := func(path, format string, args ...any) (string, error) {
		return "", fault.WithFile(fault.New(fault.Unsupported, "folder", fault.NoOffset, format, args...), path)
	}
	there := exists(p.folder)
	switch {
	case there && !(overwrite && tiledb.IsArray(p.folder)):
		return refuse(p.folder, "exists; --overwrite replaces an array")
	case !overwrite && exists(p.replaced):
		return refuse(p.folder, "a run that replaced it was broken off: %s is what it was; --overwrite goes on from there", p.replaced)
	case !overwrite && exists(p.building):
		return refuse(p.folder, "it is being written, or such a run was broken off and left %s; --overwrite removes that", p.building)
	}
	if exists(p.replaced) && !there {
		if err := os.Rename(p.replaced, p.folder); err != nil {
			return "", err
		}
	}
	for _, left := range []string{p.replaced, p.building} {
		if err := os.RemoveAll(left); err != nil {
			return "", err
		}
	}
	return filepath.Join(p.building, "array"), os.Mkdir(p.building, 0o700)
}

// put gives the array that was written its name.
func (p *place) put(path string, overwrite bool) error {
	for _, step := range p.steps(path, overwrite, exchange) {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// steps are those of put. After each of them the folder is the old array or the new one; between two without an exchange the
// old one is in its own place beside.
func (p *place) steps(path string, overwrite bool, exchange func(a, b string) error) []func() error {
	rename := func() error {
		if exists(p.folder) {
			return fault.WithFile(fault.New(fault.Unsupported, "folder", fault.NoOffset, "it exists"), p.folder)
		}
		return os.Rename(path, p.folder)
	}
	if !overwrite || !exists(p.folder) {
		return []func() error{rename, p.clean}
	}
	exchanged := false
	return []func() error{
		func() error {
			err := exchange(path, p.folder)
			if exchanged = err == nil; exchanged || !errors.Is(err, errors.ErrUnsupported) {
				return err
			}
			return os.Rename(p.folder, p.replaced)
		},
		func() error {
			if exchanged {
				return nil
			}
			return rename()
		},
		p.clean,
	}
}

// clean removes what is beside the array.
func (p *place) clean() error {
	return errors.Join(os.RemoveAll(p.building), os.RemoveAll(p.replaced))
}

// abandon removes what was being written.
func (p *place) abandon() { _ = os.RemoveAll(p.building) }

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
