package durable

import (
	"errors"
	"io/fs"
	"os"
)

// Replace renames the folder to name and removes an existing folder of that name. On Linux the two folders exchange
// their names in one step, so that name always exists. Where the system or the file system cannot do that, the old
// folder first gets a temporary name; a kill at that moment leaves both folders under temporary names. All files must
// be closed.
func (f *Folder) Replace(name string) error {
	defer f.unlock()
	if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return Rename(f.Path, name)
	} else if err != nil {
		return err
	}
	if err := Sync(f.Path); err != nil {
		return err
	}
	old := f.Path
	err := exchange(f.Path, name)
	if errors.Is(err, errors.ErrUnsupported) {
		old = temporary(name)
		if err = rename(name, old); err != nil {
			return err
		}
		if err = rename(f.Path, name); err != nil {
			return errors.Join(err, rename(old, name))
		}
	}
	if err != nil {
		return err
	}
	// The old folder has a temporary name now. If this is killed, a later run removes the rest.
	return errors.Join(SyncNames(parent(name)), os.RemoveAll(old))
}
