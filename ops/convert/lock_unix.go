//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package convert

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

const locks = true

// lock locks an open directory until it is closed, or returns errBusy if another run has it. The system ends the
// lock with the process, so that a killed run leaves none. On file systems without such locks it always succeeds.
func lock(f *os.File) error {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return errBusy
	}
	return nil
}
