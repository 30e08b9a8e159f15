package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/chaski-eo/chaski/internal/pathname"
)

// Work is a folder in which a run keeps its progress, so that a later run can continue. Its name is fixed. It is locked
// by one run at a time.
type Work struct {
	Path string

	lock *os.File // nil where folders cannot be locked
}

// workSuffix ends the name of a Work. It differs from the suffix of temporary names, because clean must not remove it.
const workSuffix = ".chaski-work"

// OpenWork opens the work for the file or folder name, .NAME.chaski-work beside it, and creates it if it is not there.
// It returns ErrLocked if another run has it.
func OpenWork(name string) (*Work, error) {
	dir, base := filepath.Split(pathname.Join(name))
	path := pathname.Join(dir, "."+base[:min(len(base), longestBase)]+workSuffix)
	if err := os.Mkdir(path, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	lock, err := lockFolder(path)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return nil, &fs.PathError{Op: "lock", Path: path, Err: err}
	}
	return &Work{Path: path, lock: lock}, nil
}

// Clear removes the content of the folder.
func (w *Work) Clear() error {
	entries, err := os.ReadDir(w.Path)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(pathname.Join(w.Path, e.Name())))
	}
	return err
}

// Remove removes the folder and its content, and releases its lock.
func (w *Work) Remove() error {
	return errors.Join(os.RemoveAll(w.Path), w.Close())
}

// Close ends the use of the folder, which stays.
func (w *Work) Close() error {
	if w.lock == nil {
		return nil
	}
	err := w.lock.Close()
	w.lock = nil
	return err
}

// SyncFile waits until the content of an open file is on the disk.
func SyncFile(f *os.File) error { return fsync(f) }
