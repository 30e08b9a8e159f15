package durable

import (
	"errors"
	"os"
)

// ErrLocked is returned for a file or folder that another run has locked.
var ErrLocked = errors.New("another run has it")

// Lock opens and locks a file or folder. Closing it ends the lock, as does the end of the process. It
// returns ErrLocked if another run holds the lock or has replaced the file at path, and
// errors.ErrUnsupported where the file system has no locks.
func Lock(path string) (*os.File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := lockOpen(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	// Another run may have removed it between Open and lock, and made a new one of that name.
	if !isNamed(file, path) {
		return nil, errors.Join(ErrLocked, file.Close())
	}
	return file, nil
}

// isNamed reports whether an open file has this name still.
func isNamed(f *os.File, path string) bool {
	held, err := f.Stat()
	if err != nil {
		return false
	}
	now, err := os.Lstat(path)
	return err == nil && os.SameFile(held, now)
}
