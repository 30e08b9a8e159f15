package diskcache

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// lockByte takes the lock of one byte of a file unless others have it. Like flock's it is one of the open file, not of
// the process.
func lockByte(f *os.File, at int64) (free bool, err error) {
	err = setByte(f, at, unix.F_WRLCK)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return false, nil
	}
	return err == nil, err
}

func unlockByte(f *os.File, at int64) error { return setByte(f, at, unix.F_UNLCK) }

func setByte(f *os.File, at int64, how int16) error {
	return unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK,
		&unix.Flock_t{Type: how, Whence: io.SeekStart, Start: at, Len: 1})
}
