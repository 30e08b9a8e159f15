// Package memory holds the buffers of a decoder: it hands them out, counts them against the budget of
// a frame, and keeps them for the next frame.
package memory

import (
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/cast"
)

// Memory is the memory of one decoder. It is for one goroutine.
type Memory struct {
	Bytes Pool[byte]
	Lens  Pool[uint32] // lengths of strings
	limit int          // bytes that live buffers may have together
	work  int          // bytes that may still be reserved in this frame
}

// New returns an empty memory without a budget.
func New() Memory {
	lens := func(n int) []uint32 { return make([]uint32, n) }
	return Memory{Bytes: Pool[byte]{size: 1, alloc: cast.Aligned}, Lens: Pool[uint32]{size: 4, alloc: lens}}
}

// SetLimit starts the budget of a frame: at most limit bytes at once.
func (m *Memory) SetLimit(limit int) {
	m.limit = limit
	// The sum over a frame is bounded too, because a long chain of cheap nodes would otherwise keep a
	// worker busy for minutes while it stays within limit. Sensible graphs make far
	// fewer than 16 passes over everything.
	m.work = 16 * limit
}

// Limit returns the bytes that buffers may have together.
func (m *Memory) Limit() int { return m.limit }

// Live returns the bytes of the buffers in use.
func (m *Memory) Live() int { return m.Bytes.live + m.Lens.live }

// Reserve checks that n more bytes stay within the budget, at once and over the whole frame. Call it
// before Get: it refuses numbers that only the frame vouches for.
func (m *Memory) Reserve(n int) error {
	if m.work -= n; m.work < 0 {
		return fault.New(fault.Limit, "", "more streams than any sound graph of this frame's outputs has")
	}
	if n < 0 || n > m.limit-m.Live() {
		return fault.New(fault.Limit, "", "streams of more than %d bytes at once", m.limit)
	}
	return nil
}

// Trim ends a frame: it gives memory back to the garbage collector if the frame needed far less than
// the pools hold.
func (m *Memory) Trim() {
	m.Bytes.trim()
	m.Lens.trim()
}

// Resize returns a slice of n elements, in the memory of s if that is large enough. Only then the old
// elements stay.
func Resize[T any](s []T, n int) []T {
	if n <= cap(s) {
		return s[:n]
	}
	return make([]T, n)
}
