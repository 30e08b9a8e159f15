package convert

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/store/tiledb"
)

// target is the directory of an array that appears in one step. The new array is written in a hidden
// directory beside it. Where the system cannot exchange two directories in one step, the old array is for a
// moment in a second hidden directory.
type target struct {
	dir      string
	building string   // .NAME.new
	replaced string   // .NAME.old
	held     *os.File // building, open and locked while this run owns it; nil where there are no locks
	mine     bool     // this run owns building
}

// targetOf returns the target for dir. For a link it is the directory that the link leads to, because the hidden
// directories need to be on its file system, and the link should stay.
func targetOf(dir string) *target {
	dir = pathname.Join(dir)
	if st, err := os.Lstat(dir); err == nil && st.Mode()&fs.ModeSymlink != 0 {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		}
	}
	if base := filepath.Base(dir); base == "." || base == ".." { // the hidden names need its real name
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		}
		if real, err := filepath.Abs(dir); err == nil {
			dir = real
		}
	}
	parent, name := filepath.Split(dir)
	return &target{dir: dir, building: pathname.Join(parent, "."+name+".new"),
		replaced: pathname.Join(parent, "."+name+".old")}
}

func (p *target) refuse(format string, args ...any) error {
	return fault.WithFile(fault.New(fault.Unsupported, "folder", fault.NoOffset, format, args...), p.dir)
}

// begin creates the directory for the new array and returns its path. It refuses an existing array and the
// remains of an interrupted run; with overwrite it removes the remains first. A run that still goes on is
// left alone.
func (p *target) begin(overwrite bool) (string, error) {
	found := exists(p.dir)
	switch {
	case found && !(overwrite && tiledb.IsArray(p.dir)):
		return "", p.refuse("it exists; --overwrite replaces an array")
	case !overwrite && exists(p.replaced):
		return "", p.refuse("a run that replaced it was interrupted, and %s is the old array; --overwrite "+
			"restores it and goes on", p.replaced)
	case !overwrite && exists(p.building):
		return "", p.refuse("it is being written, or an interrupted run left %s; --overwrite removes that", p.building)
	}
	err := p.remains()
	if err == nil {
		err = p.take()
	}
	if errors.Is(err, durable.ErrLocked) || errors.Is(err, fs.ErrExist) {
		return "", p.refuse("another run is writing it, in %s", p.building)
	}
	return filepath.Join(p.building, "array"), err
}

// remains removes what an interrupted run left. It first takes the lock, since a run that goes on must not lose
// its files.
func (p *target) remains() error {
	switch err := p.hold(); {
	case err == nil:
		defer p.release()
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	// Interrupted between its two renames, a run leaves the old array under the hidden name only.
	if exists(p.replaced) && !exists(p.dir) {
		if err := os.Rename(p.replaced, p.dir); err != nil {
			return err
		}
	}
	return p.removed()
}

// take creates the hidden directory of this run and locks it. If another run locks it in between, that run
// owns it.
func (p *target) take() error {
	if err := os.Mkdir(p.building, 0o700); err != nil {
		return err
	}
	err := p.hold()
	if errors.Is(err, fs.ErrNotExist) {
		return durable.ErrLocked
	}
	return err
}

// hold opens and locks the directory building.
func (p *target) hold() error {
	f, err := durable.Lock(p.building)
	p.held = f
	p.mine = err == nil || errors.Is(err, errors.ErrUnsupported) // without locks, any run that finds it takes it
	if p.mine {
		return nil
	}
	return err
}

// release gives up the lock.
func (p *target) release() {
	if p.held != nil {
		_ = p.held.Close()
	}
	p.held, p.mine = nil, false
}

// put renames the finished array at path to its place.
func (p *target) put(path string, overwrite bool) error {
	for _, step := range p.steps(path, overwrite, durable.Exchange) {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// steps returns the steps of put, for tests to stop between them. After each step the directory is the old
// array or the new one; without exchange, after the first step, it is missing and the old array is at replaced.
func (p *target) steps(path string, overwrite bool, exchange func(a, b string) error) []func() error {
	rename := func() error {
		if exists(p.dir) {
			return p.refuse("it exists")
		}
		// Until it is on the disk, a crash could leave the name with files without content.
		if err := settle(path); err != nil {
			return err
		}
		return os.Rename(path, p.dir)
	}
	if !overwrite || !exists(p.dir) {
		return []func() error{rename, p.clean}
	}
	exchanged := false
	return []func() error{
		func() error {
			if !tiledb.IsArray(p.dir) {
				return p.refuse("it is no longer an array")
			}
			// Before the old array goes: see rename.
			if err := settle(path); err != nil {
				return err
			}
			err := exchange(path, p.dir)
			if exchanged = err == nil; exchanged || !errors.Is(err, errors.ErrUnsupported) {
				return err
			}
			return os.Rename(p.dir, p.replaced)
		},
		func() error {
			if exchanged {
				return nil
			}
			err := rename()
			if err != nil && !exists(p.dir) {
				err = errors.Join(err, os.Rename(p.replaced, p.dir))
			}
			return err
		},
		p.clean,
	}
}

// clean removes the hidden directories and gives up the lock.
func (p *target) clean() error {
	defer p.release()
	// The names need to be on the disk before the old array is removed, and before the caller says that it is done.
	if err := durable.SyncNames(pathname.Dir(p.dir)); err != nil {
		return err
	}
	return p.removed()
}

// removed removes the hidden directories. building is last, because its lock keeps other runs away.
func (p *target) removed() error {
	return errors.Join(os.RemoveAll(p.replaced), os.RemoveAll(p.building))
}

// abandon removes an array that was not finished. After put it does nothing.
func (p *target) abandon() {
	if p.mine {
		_ = os.RemoveAll(p.building)
		p.release()
	}
}

// settle waits until an array is on the disk. Tests replace it.
var settle = durable.Sync

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
