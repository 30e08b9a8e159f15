package durable

import (
	"errors"
	"io/fs"
	"os"
)

// WriteFolder makes the folder name of what write creates in a folder with a temporary name. An error or a kill leaves
// no folder name. There must be none before, unless it is empty.
func WriteFolder(name string, write func(folder string) error) error {
	return writeFolder(name, write, (*Folder).Place)
}

// ReplaceFolder is WriteFolder for a folder that may be there, and then stays as it is until the new one replaces it.
func ReplaceFolder(name string, write func(folder string) error) error {
	return writeFolder(name, write, (*Folder).Replace)
}

func writeFolder(name string, write func(folder string) error, publish func(f *Folder, name string) error) error {
	folder, err := NewFolder(name)
	if err != nil {
		return err
	}
	if err = write(folder.Path); err == nil {
		err = publish(folder, name)
	}
	if err != nil {
		return errors.Join(err, folder.Remove())
	}
	return nil
}

// Replace is Replace for the folder: name gets its content.
func (f *Folder) Replace(name string) error {
	defer f.unlock()
	return Replace(f.Path, name)
}

// Replace renames the folder from to name and removes an existing folder of that name. On Linux the two folders
// exchange their names in one step, so name always exists. Where the system or the file system cannot do that, the
// old folder first gets a temporary name; a kill at that moment leaves both folders under other names. All files must
// be closed.
func Replace(from, name string) error {
	if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return Rename(from, name)
	} else if err != nil {
		return err
	}
	if err := Sync(from); err != nil {
		return err
	}
	old := from
	err := exchange(from, name)
	if errors.Is(err, errors.ErrUnsupported) {
		old = temporary(name)
		if err = rename(name, old); err != nil {
			return err
		}
		if err = rename(from, name); err != nil {
			return errors.Join(err, rename(old, name))
		}
	}
	if err != nil {
		return err
	}
	// The old folder has another name now. If this is killed, a later run removes the rest.
	return errors.Join(SyncNames(parent(name)), os.RemoveAll(old))
}
