//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package diskcache

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// The system ends locks with the process, so a killed engine leaves none.

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); err != unix.EINTR {
			return err
		}
	}
}

// lock waits for the lock of a file.
func lock(f *os.File) error { return flock(f, unix.LOCK_EX) }

// lockShared waits for a lock that others may have, too.
func lockShared(f *os.File) error { return flock(f, unix.LOCK_SH) }

func unlock(f *os.File) error { return flock(f, unix.LOCK_UN) }

// lockAlone takes the lock of a file unless others have it.
func lockAlone(f *os.File) (alone bool, err error) {
	err = flock(f, unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// noFollow makes the opening of a file fail at a link or a pipe.
const noFollow = unix.O_NOFOLLOW | unix.O_NONBLOCK

// isLink reports whether an opening failed at a link or at a pipe.
func isLink(err error) bool {
	return errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EMLINK) || errors.Is(err, unix.ENXIO)
}

// ownerOf returns the user that a file belongs to, and how many names it has.
func ownerOf(info fs.FileInfo) (user, names int) {
	st := info.Sys().(*syscall.Stat_t)
	return int(st.Uid), int(st.Nlink)
}
