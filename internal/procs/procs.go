// Package procs holds the default number of decoding goroutines and the memory of the machine.
//
// Goroutines that compute have as many processors (GOMAXPROCS counts them) as the machine, at most. Two kinds of
// programs need one more:
//
//   - A goroutine that runs C keeps its processor only while another one is idle. With as many workers as processors,
//     none is: the scheduler takes the processor away after 20 µs and gives it to a thread that has nothing to do, and
//     the worker waits to get it back. Calls of decoders in C take ten times as long.
//   - A server sends a batch of 3 MiB in 48 steps, since gRPC lets a stream have 64 KiB on their way. Between two steps
//     goroutines wait for each other and for the network, and one that is ready waits for a processor until a worker
//     is stopped, up to 10 ms. So a client that trains beside another one whose questions take all turns (package
//     turns) was sent a batch in 100 ms, and its workers had nothing to do. With one processor more, the goroutines
//     that send run at once, on a thread that the system prefers because it sleeps so much.
package procs

import (
	"os"
	"runtime"
	"sync/atomic"
)

var spare atomic.Int64

// Spare adds the processor that workers in C, and servers, need, unless the environment sets GOMAXPROCS. Commands call
// it at their start. Libraries must not, because the number of processors belongs to the program.
func Spare() {
	if os.Getenv("GOMAXPROCS") == "" && spare.CompareAndSwap(0, 1) {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	}
}

// Workers returns the default number of workers: GOMAXPROCS, without the processor that Spare added.
func Workers() int { return max(1, runtime.GOMAXPROCS(0)-int(spare.Load())) }
