package procs

import (
	"errors"
	"syscall"
)

// defaultFiles is what most systems allow a process that does not ask for more.
const defaultFiles = 1024

// OutOfDescriptors reports whether a system call failed because the process or the machine has no file descriptor left.
func OutOfDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
