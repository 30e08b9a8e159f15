package batch

import (
	"slices"

	"github.com/chaski-eo/chaski/internal/invariants"
)

// Idle keeps the buffers of released batches, by size, for the next batch of the same size. A new buffer of shared
// memory costs a page fault every 4 KiB, and every client has to map it. The zero value is empty. It has no lock of
// its own, because its users count its bytes together with others under theirs.
type Idle struct {
	buffers map[int][]idleBuffer // by size, the one used last at the end
	bytes   int64                // of all of them
	count   int                  // of calls of Keep
}

// idleBuffer is a buffer, and how many calls of Keep there were when it came.
type idleBuffer struct {
	Buffer
	count int
}

// idleBatches is after how many batches that come back a buffer goes that none of them took: a stall of a client or of
// a store leaves more buffers than batches need.
const idleBatches = 256

// Bytes returns the bytes of the buffers that are kept.
func (i *Idle) Bytes() int64 { return i.bytes }

// Len returns how many buffers are kept.
func (i *Idle) Len() (n int) {
	for _, l := range i.buffers {
		n += len(l)
	}
	return n
}

// Take returns a buffer of n bytes with any content for a batch of an owner (nil: of nobody), or nil if none is kept.
// The buffer has this owner or none: another owner could write into the batch.
func (i *Idle) Take(n int, owner Owner) Buffer {
	list, best := i.buffers[n], -1
	for last := len(list) - 1; last >= 0; last-- { // the one used last first, which caches are most likely to hold
		holder := ownerOf(list[last].Buffer)
		if holder == owner {
			best = last
			break
		}
		if holder == nil && best < 0 {
			best = last
		}
	}
	if best < 0 {
		return nil
	}
	buffer := list[best].Buffer
	i.buffers[n] = slices.Delete(list, best, best+1)
	i.bytes -= int64(n)
	return buffer
}

// FreeSome frees buffers until they had n bytes or none is left. It returns their bytes.
func (i *Idle) FreeSome(n int64) (freed int64) {
	return i.free(func(idleBuffer) bool { return true }, n)
}

// Forget frees the buffers of an owner. It returns their bytes.
func (i *Idle) Forget(o Owner) (freed int64) {
	return i.free(func(k idleBuffer) bool { return ownerOf(k.Buffer) == o }, i.bytes)
}

// Keep keeps b. Its content is lost. It frees buffers that no batch took for long, and returns their bytes.
func (i *Idle) Keep(b Buffer) (freed int64) {
	i.CheckOut(b)
	invariants.Overwrite(b.Bytes())
	size := len(b.Bytes())
	if i.buffers == nil {
		i.buffers = map[int][]idleBuffer{}
	}
	i.count++
	i.buffers[size] = append(i.buffers[size], idleBuffer{b, i.count})
	i.bytes += int64(size)
	return i.free(func(k idleBuffer) bool { return i.count-k.count > idleBatches }, i.bytes)
}

// CheckOut panics, in builds with the tag invariants, if b is kept already: it was given back twice.
func (i *Idle) CheckOut(b Buffer) {
	if !invariants.Enabled || len(b.Bytes()) == 0 {
		return
	}
	n := len(b.Bytes())
	again := slices.ContainsFunc(i.buffers[n], func(idle idleBuffer) bool { return &idle.Bytes()[0] == &b.Bytes()[0] })
	invariants.Check(!again, "a buffer of %d bytes is given back twice", n)
}

// Free frees all buffers that are kept.
func (i *Idle) Free() {
	i.FreeSome(i.bytes)
	clear(i.buffers)
}

// free frees buffers for which which holds, until they had n bytes. It returns their bytes.
func (i *Idle) free(which func(idleBuffer) bool, n int64) (freed int64) {
	for size, l := range i.buffers {
		i.buffers[size] = slices.DeleteFunc(l, func(b idleBuffer) bool {
			if freed >= n || !which(b) {
				return false
			}
			freed += int64(size)
			b.Free()
			return true
		})
	}
	i.bytes -= freed
	return freed
}
