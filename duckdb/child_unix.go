//go:build unix

package duckdb

import (
	"errors"
	"runtime/debug"
	"syscall"
)

// canIsolate: a process can be given a bound of its memory, and further files.
const canIsolate = true

// isPipe reports whether the other end of a pipe is closed.
func isPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }

// bound sets the hard limit of this process's memory.
func bound(memory int64) error {
	// The garbage collector keeps what this process holds of columns and results below its half.
	debug.SetMemoryLimit(memory / 2)
	return limit(memory)
}
