//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package durable

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lockOpen locks an open file or folder until it is closed. The system ends the lock with the process, so a killed
// run leaves none.
func lockOpen(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return ErrLocked
	case err != nil: // ENOLCK, ENOSYS or ENOTSUP: a network file system without locks
		return fmt.Errorf("lock: %w: %w", errors.ErrUnsupported, err)
	}
	return nil
}

// unsupported reports whether a sync failed because the file system has none for folders.
func unsupported(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOSYS)
}
