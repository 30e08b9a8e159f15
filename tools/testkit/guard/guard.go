// Package guard gives tests memory between two pages without access. A loop that reads or writes a byte
// before or after it faults.
package guard

import (
	"runtime/debug"
	"testing"
)

// Room is memory between two pages without access.
type Room struct{ data, all []byte }

// Faults turns a fault into a panic of this goroutine that names the address. Without it the process
// ends.
func Faults(t testing.TB) {
	old := debug.SetPanicOnFault(true)
	t.Cleanup(func() { debug.SetPanicOnFault(old) })
}

// Front returns the first n bytes, with no more capacity than that. Access before them faults.
func (r *Room) Front(n int) []byte { return r.data[:n:n] }

// Back returns the last n bytes. Access after them faults.
func (r *Room) Back(n int) []byte { return r.data[len(r.data)-n:] }

// At returns n bytes at one of the two ends.
func (r *Room) At(back bool, n int) []byte {
	if back {
		return r.Back(n)
	}
	return r.Front(n)
}

// Put is At, filled with the bytes of b.
func (r *Room) Put(back bool, b []byte) []byte {
	p := r.At(back, len(b))
	copy(p, b)
	return p
}
