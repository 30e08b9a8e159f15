package durable

import (
	"errors"
	"io/fs"
	"os"
)

// Replace gives the folder the name of one that is there, or a name that nobody has, and removes the old folder. On
// Linux the two change their names in one step, so that the name is always that of the old folder or of the new one.
// Where the system cannot do that, the old folder has a temporary name for a moment, and nobody has the name; a kill in
// that moment leaves both folders under temporary names. All files must be closed.
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
	// The old folder has a temporary name now. What a kill leaves of it, a later run removes.
	return errors.Join(SyncNames(parent(name)), os.RemoveAll(old))
}
