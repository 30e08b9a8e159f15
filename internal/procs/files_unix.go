//go:build unix

package procs

import (
	"math"
	"syscall"
)

// Files returns how many file descriptors this process may have: the soft limit of RLIMIT_NOFILE, which Go raises to
// the hard one at the start of a program.
func Files() int64 {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return defaultFiles
	}
	if n := uint64(l.Cur); n < math.MaxInt64 {
		return int64(n)
	}
	return math.MaxInt64 // no limit
}
