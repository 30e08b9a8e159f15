// Package guard is memory for tests of loops that do not check bounds: what touches a byte in front of
// it or behind it faults.
package guard

import (
	"runtime/debug"
	"testing"
)

// Room is memory between two pages that nobody may touch.
type Room struct{ data, all []byte }

// Faults makes a fault a panic of this goroutine, which names the address, in place of the process's end.
func Faults(t testing.TB) {
	old := debug.SetPanicOnFault(true)
	t.Cleanup(func() { debug.SetPanicOnFault(old) })
}

// Front returns the first n bytes, with no more capacity than that. What lies in front of them faults.
func (r *Room) Front(n int) []byte { return r.data[:n:n] }

// Back returns the last n bytes. What lies behind them faults.
func (r *Room) Back(n int) []byte { return r.data[len(r.data)-n:] }

// At returns n bytes at one of the two ends.
func (r *Room) At(back bool, n int) []byte {
	if back {
		return r.Back(n)
	}
	return r.Front(n)
}

// Put is At with the bytes of b.
func (r *Room) Put(back bool, b []byte) []byte {
	p := r.At(back, len(b))
	copy(p, b)
	return p
}
