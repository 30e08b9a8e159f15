package convert

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/store/tiledb"
)

// target is the directory of an array that appears in one step: see durable.Replace. The new array is written in a
// hidden directory beside it.
type target struct {
	dir       string
	overwrite bool // an array may be there
	hidden    *durable.Folder
}

// newTarget creates the hidden directory for dir. For a link it is beside the directory that the link leads to, since
// it needs to be on the same file system, and the link should stay.
func newTarget(dir string, overwrite bool) (*target, error) {
	dir = pathname.Join(dir)
	st, err := os.Lstat(dir)
	linked := err == nil && st.Mode()&fs.ModeSymlink != 0
	nameless := slices.Contains([]string{".", ".."}, filepath.Base(dir)) // the hidden name repeats the name
	if real, err := filepath.EvalSymlinks(dir); err == nil && (linked || nameless) {
		dir = real
	}
	if real, err := filepath.Abs(dir); err == nil && nameless {
		dir = real
	}
	p := &target{dir: dir, overwrite: overwrite}
	if err = p.check(); err == nil {
		p.hidden, err = durable.NewFolder(dir)
	}
	return p, err
}

// check refuses a directory that is there, unless it is an array that may be replaced.
func (p *target) check() error {
	if _, err := os.Lstat(p.dir); errors.Is(err, fs.ErrNotExist) || p.overwrite && tiledb.IsArray(p.dir) {
		return nil
	}
	return fault.WithFile(fault.New(fault.Unsupported, "folder", fault.NoOffset,
		"it exists; --overwrite replaces an array"), p.dir)
}

// path returns where the new array is written.
func (p *target) path() string { return pathname.Join(p.hidden.Path, "array") }

// put gives the finished array its name, once it is on the disk. Files of an old array are removed.
func (p *target) put() error {
	if err := p.check(); err != nil {
		return err
	}
	return durable.Replace(p.path(), p.dir)
}

// close removes the hidden directory, with an array that was not finished.
func (p *target) close() error { return p.hidden.Remove() }
