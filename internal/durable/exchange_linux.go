package durable

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Exchange swaps the names of two folders in one step. It returns errors.ErrUnsupported if the file system
// cannot do that.
func Exchange(a, b string) error { return renameAs(a, b, unix.RENAME_EXCHANGE, "exchange") }

// renameNew is RenameNew in one step, or errors.ErrUnsupported.
func renameNew(from, to string) error { return renameAs(from, to, unix.RENAME_NOREPLACE, "rename") }

func renameAs(from, to string, flags uint, op string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, flags)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOTSUP):
		return errors.ErrUnsupported
	}
	return &os.LinkError{Op: op, Old: from, New: to, Err: err}
}
