package resources

import (
	"slices"

	"github.com/chaski-eo/chaski/internal/invariants"
)

// Idle keeps the buffers of batches that came back, by size, for the next batch of the same size. A new buffer of
// shared memory costs a page fault every 4 KiB, and every client has to map it. The zero value is empty. It has no
// lock of its own, because its users count its bytes together with others under theirs.
type Idle struct {
	buffers map[int][]Buffer // by size
	bytes   int64            // of all of them
}

// Bytes returns the bytes of the buffers that are kept.
func (i *Idle) Bytes() int64 { return i.bytes }

// Take returns a buffer of n bytes with any content, or nil if none is kept.
func (i *Idle) Take(n int) Buffer {
	l := i.buffers[n]
	if len(l) == 0 {
		return nil
	}
	b := l[len(l)-1] // the one used last, which caches are most likely to hold
	l[len(l)-1] = nil
	i.buffers[n] = l[:len(l)-1]
	i.bytes -= int64(n)
	return b
}

// Keep keeps b. Its content is lost.
func (i *Idle) Keep(b Buffer) {
	i.CheckOut(b)
	invariants.Overwrite(b.Bytes())
	n := len(b.Bytes())
	if i.buffers == nil {
		i.buffers = map[int][]Buffer{}
	}
	i.buffers[n] = append(i.buffers[n], b)
	i.bytes += int64(n)
}

// CheckOut panics, in builds with the tag invariants, if b is kept already: it was given back twice.
func (i *Idle) CheckOut(b Buffer) {
	if !invariants.Enabled || len(b.Bytes()) == 0 {
		return
	}
	n := len(b.Bytes())
	again := slices.ContainsFunc(i.buffers[n], func(idle Buffer) bool { return &idle.Bytes()[0] == &b.Bytes()[0] })
	invariants.Check(!again, "a buffer of %d bytes is given back twice", n)
}

// Free frees all buffers that are kept.
func (i *Idle) Free() {
	for _, l := range i.buffers {
		for _, b := range l {
			b.Free()
		}
	}
	clear(i.buffers)
	i.bytes = 0
}
