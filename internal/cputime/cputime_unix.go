//go:build unix

package cputime

import (
	"syscall"
	"time"
)

// Used returns the processor time of the process, in user and kernel mode.
func Used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // EFAULT or EINVAL: not with these arguments
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
