// Package pages allocates large memory that the system has back as soon as it is freed.
//
// Memory of Go's heap stays in use until the garbage collector finds that it is unused. If a request returns 512 MiB
// to a budget and leaves the memory to the collector, the next request allocates as much again beside it. The kernel
// counts both, and kills the process.
//
// This works on Linux only. On other systems the memory comes from the heap.
package pages

import (
	"sync/atomic"

	"github.com/chaski-eo/chaski/internal/procs"
)

// Worth is the size in bytes from which memory of this package is better than the heap. Smaller allocations
// start collections in time, because each is a small part of what GOMEMLIMIT leaves free: 4 MiB are half of what
// the smallest --memory-total leaves.
const Worth = 4 << 20

// Memory is zeroed memory at an address divisible by 64.
type Memory struct {
	data  []byte
	freed atomic.Bool
}

// held are the bytes of all Memory outside of the heap.
var held atomic.Int64

// Held returns the bytes that the process has outside of Go's heap by this package.
func Held() int64 { return held.Load() }

// New returns n bytes, at least 1. The caller must free them, the garbage collector never does.
func New(n int) (*Memory, error) {
	data, err := take(n)
	if err != nil {
		return nil, err
	}
	return &Memory{data: data}, nil
}

// Bytes returns the memory. It must not be used after Free: an access ends the process.
func (m *Memory) Bytes() []byte { return m.data }

// Free gives the memory back. It may be called more than once.
func (m *Memory) Free() {
	if !m.freed.Swap(true) {
		give(m.data)
	}
}

// count counts n bytes more, which leave that much less for the heap.
func count(n int) {
	held.Add(int64(n))
	procs.Outside(int64(n))
}
