//go:build unix

package bench

import (
	"runtime"
	"syscall"
	"time"
)

// maxRSS returns the most memory that this process, or its children that have ended, has had
// resident, in bytes; 0 where it is not known.
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

// cpuTime returns the CPU time that this process has used; 0 where it is not known.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
