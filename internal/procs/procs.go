// Package procs says how many goroutines decode at a time where nobody has chosen, and how much memory there is.
//
// A goroutine that is in C keeps its processor (GOMAXPROCS counts them) only while another one is
// idle. With as many workers as processors none is: the scheduler takes it away after 20 µs, gives it
// to a thread that finds nothing to do, and the worker waits for its return. Decoders in C take ten
// times as long, so a program with them has one processor more than workers.
package procs

import (
	"os"
	"runtime"
	"sync/atomic"
)

var spare atomic.Int64

// Spare adds the processor that workers in C need, unless the environment names a number. For the
// start of a command: it is not for libraries to say how many processors a program has.
func Spare() {
	if os.Getenv("GOMAXPROCS") == "" && spare.CompareAndSwap(0, 1) {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	}
}

// Workers is the default number of workers: GOMAXPROCS, without the processor that Spare has added.
func Workers() int { return max(1, runtime.GOMAXPROCS(0)-int(spare.Load())) }
