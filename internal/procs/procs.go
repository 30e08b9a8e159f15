// Package procs holds the default number of decoding goroutines and the memory of the machine.
//
// A goroutine that runs C keeps its processor (GOMAXPROCS counts them) only while another processor is
// idle. With as many workers as processors, none is: the scheduler takes the processor away after 20 µs
// and gives it to a thread that has nothing to do, and the worker waits to get it back. Calls of decoders
// in C take ten times as long, so that programs with such decoders need one processor more than workers.
package procs

import (
	"os"
	"runtime"
	"sync/atomic"
)

var spare atomic.Int64

// Spare adds the processor that workers in C need, unless the environment sets GOMAXPROCS. Commands call
// it at their start. Libraries must not, because the number of processors belongs to the program.
func Spare() {
	if os.Getenv("GOMAXPROCS") == "" && spare.CompareAndSwap(0, 1) {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	}
}

// Workers returns the default number of workers: GOMAXPROCS, without the processor that Spare added.
func Workers() int { return max(1, runtime.GOMAXPROCS(0)-int(spare.Load())) }
