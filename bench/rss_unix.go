//go:build unix

package bench

import (
	"runtime"
	"syscall"
)

// maxRSS returns the largest resident memory of this process in bytes, or 0 if the system does not tell.
func maxRSS() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return int64(u.Maxrss)
	}
	return int64(u.Maxrss) << 10
}
