//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package convert

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

const locks = true

// lock takes an open folder for as long as it is open, or is errBusy where another run has it: the system ends the
// lock with the process. File systems without such locks give it to everyone.
func lock(f *os.File) error {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return errBusy
	}
	return nil
}
