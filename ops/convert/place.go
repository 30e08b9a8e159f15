package convert

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/tiledb"
)

// errBusy is that another run has a folder.
var errBusy = errors.New("another run has it")

// place is a folder that an array appears in, all at once. What is being written lies in a hidden folder beside it,
// and so does, where the system cannot exchange two folders in one step, for a moment the array that another replaces.
type place struct {
	folder   string
	building string   // .NAME.new
	replaced string   // .NAME.old
	held     *os.File // building, locked, while this run has it
}

// placeOf is the place of a folder; of a link to one, where that lies: on its own file system, and the link stays.
func placeOf(folder string) *place {
	folder = filepath.Clean(folder)
	if st, err := os.Lstat(folder); err == nil && st.Mode()&fs.ModeSymlink != 0 {
		if real, err := filepath.EvalSymlinks(folder); err == nil {
			folder = real
		}
	}
	if base := filepath.Base(folder); base == "." || base == ".." { // what lies beside it has its name
		if real, err := filepath.Abs(folder); err == nil {
			folder = real
		}
	}
	dir, name := filepath.Split(folder)
	return &place{folder: folder, building: filepath.Join(dir, "."+name+".new"), replaced: filepath.Join(dir, "."+name+".old")}
}

func (p *place) refuse(format string, args ...any) error {
	return fault.WithFile(fault.New(fault.Unsupported, "folder", fault.NoOffset, format, args...), p.folder)
}

// begin makes the folder in which the array is written, and returns where in it. What there is already, or a run that was
// broken off has left, is refused, or with overwrite cleaned: then the array is the one from before that run, or its new one.
// A run that goes on is left alone.
func (p *place) begin(overwrite bool) (string, error) {
	there := exists(p.folder)
	switch {
	case there && !(overwrite && tiledb.IsArray(p.folder)):
		return "", p.refuse("exists; --overwrite replaces an array")
	case !overwrite && exists(p.replaced):
		return "", p.refuse("a run that replaced it was broken off: %s is what it was; --overwrite goes on from there", p.replaced)
	case !overwrite && exists(p.building):
		return "", p.refuse("it is being written, or such a run was broken off and left %s; --overwrite removes that", p.building)
	}
	err := p.remains()
	if err == nil {
		err = p.take()
	}
	if errors.Is(err, errBusy) || errors.Is(err, fs.ErrExist) {
		return "", p.refuse("another run is writing it, in %s", p.building)
	}
	return filepath.Join(p.building, "array"), err
}

// remains removes what a run that was broken off has left.
func (p *place) remains() error {
	switch err := p.hold(); {
	case err == nil:
		defer p.release()
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if exists(p.replaced) && !exists(p.folder) {
		if err := os.Rename(p.replaced, p.folder); err != nil {
			return err
		}
	}
	return p.removed()
}

// take makes the folder of this run. Where another run takes it in the same moment, that one has it.
func (p *place) take() error {
	if err := os.Mkdir(p.building, 0o700); err != nil {
		return err
	}
	err := p.hold()
	if errors.Is(err, fs.ErrNotExist) {
		return errBusy
	}
	return err
}

// hold locks what is at building.
func (p *place) hold() error {
	f, err := os.Open(p.building)
	if err != nil {
		return err
	}
	if err = lock(f); err == nil {
		if p.held = f; !locks { // an open folder could not be removed
			return f.Close()
		}
		mine, _ := f.Stat()
		if now, err := os.Stat(p.building); err == nil && os.SameFile(mine, now) {
			return nil
		}
		err = errBusy // it was removed, or is another by now
	}
	p.held = nil
	return errors.Join(err, f.Close())
}

// release lets others have the folder.
func (p *place) release() {
	if p.held != nil {
		_ = p.held.Close()
		p.held = nil
	}
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
			return p.refuse("it exists")
		}
		return os.Rename(path, p.folder)
	}
	if !overwrite || !exists(p.folder) {
		return []func() error{rename, p.clean}
	}
	exchanged := false
	return []func() error{
		func() error {
			if !tiledb.IsArray(p.folder) {
				return p.refuse("it is no array any more")
			}
			if err := settle(path); err != nil {
				return err
			}
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
			err := rename()
			if err != nil && !exists(p.folder) {
				err = errors.Join(err, os.Rename(p.replaced, p.folder))
			}
			return err
		},
		p.clean,
	}
}

// clean removes what is beside the array, and ends the run.
func (p *place) clean() error {
	defer p.release()
	return p.removed()
}

// removed removes what is beside the array; building, which other runs go by, last.
func (p *place) removed() error {
	return errors.Join(os.RemoveAll(p.replaced), os.RemoveAll(p.building))
}

// abandon removes what was being written, if that has no name yet.
func (p *place) abandon() {
	if p.held != nil {
		_ = os.RemoveAll(p.building)
		p.release()
	}
}

// settle waits until all files below a folder are on the disk: what they replace can go then, whenever the machine stops.
func settle(folder string) error {
	return filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			if f, err := os.Open(path); err == nil {
				_ = fsync(f) // not every system has this for folders
				_ = f.Close()
			}
			return nil
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		return errors.Join(fsync(f), f.Close())
	})
}

// fsync is os.File.Sync but in tests.
var fsync = (*os.File).Sync

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
