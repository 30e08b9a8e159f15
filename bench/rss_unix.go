//go:build unix

package bench

import (
	"runtime"
	"syscall"
	"time"
)

// maxRSS returns the largest resident memory of this process or, with children, of its ended children, in bytes. It
// returns 0 if the system does not tell.
func maxRSS(children bool) int64 {
	who := syscall.RUSAGE_SELF
	if children {
		who = syscall.RUSAGE_CHILDREN
	}
	var u syscall.Rusage
	if err := syscall.Getrusage(who, &u); err != nil {
		return 0
	}
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return int64(u.Maxrss)
	}
	return int64(u.Maxrss) << 10
}

// cpuTime returns the CPU time of this process, or 0 if the system does not tell.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
