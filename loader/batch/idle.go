package batch

import (
	"slices"

	"github.com/chaski-eo/chaski/internal/invariants"
)

// Idle keeps the buffers of released batches for the next batches of about the same size. A new buffer of shared memory
// costs a page fault every 4 KiB, and every client has to map it. The zero value is empty. It has no lock of its own,
// because its users count its bytes together with others under theirs.
type Idle struct {
	buffers []idleBuffer // the one used last at the end
	bytes   int64        // of all of them
	count   int          // of calls of Keep
}

// idleBuffer is a buffer, and how many calls of Keep there were when it came.
type idleBuffer struct {
	Buffer
	count int
}

const (
	// idleBatches is after how many batches that come back a buffer goes that none of them took: a stall of a client or
	// of a store leaves more buffers than batches need.
	idleBatches = 256
	// spareShare is the part of a batch by which its buffer may be larger. Batches of 16 to 20 rows share buffers then,
	// and at most a fifth of a buffer is unused: 1/4 / (1 + 1/4).
	spareShare = 4
)

// Bytes returns the bytes of the buffers that are kept.
func (i *Idle) Bytes() int64 { return i.bytes }

// Len returns how many buffers are kept.
func (i *Idle) Len() int { return len(i.buffers) }

// Take returns a buffer with any content for a batch of n bytes of an owner (nil: of nobody), or nil if none is kept.
// It has n bytes, or up to a part of spareShare more: callers count the bytes that it has. It is the smallest of the
// owner, or else of those without an owner: another owner could write into the batch.
func (i *Idle) Take(n int, owner Owner) Buffer {
	best, owned := -1, false
	for k, idle := range slices.Backward(i.buffers) { // the one used last first, which caches are most likely to hold
		size, holder := len(idle.Bytes()), ownerOf(idle.Buffer)
		if size < n || size > n+n/spareShare || holder != nil && holder != owner {
			continue
		}
		isOwn := holder == owner
		if best < 0 || isOwn && !owned || isOwn == owned && size < len(i.buffers[best].Bytes()) {
			best, owned = k, isOwn
		}
	}
	if best < 0 {
		return nil
	}
	buffer := i.buffers[best].Buffer
	i.buffers = slices.Delete(i.buffers, best, best+1)
	i.bytes -= int64(len(buffer.Bytes()))
	return buffer
}

// FreeSome frees buffers, the one unused for longest first, until they had n bytes or none is left. It returns their
// bytes.
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
	i.count++
	i.buffers = append(i.buffers, idleBuffer{b, i.count})
	i.bytes += int64(len(b.Bytes()))
	return i.free(func(k idleBuffer) bool { return i.count-k.count > idleBatches }, i.bytes)
}

// CheckOut panics, in builds with the tag invariants, if b is kept already: it was given back twice.
func (i *Idle) CheckOut(b Buffer) {
	if !invariants.Enabled || len(b.Bytes()) == 0 {
		return
	}
	again := slices.ContainsFunc(i.buffers, func(idle idleBuffer) bool {
		return len(idle.Bytes()) > 0 && &idle.Bytes()[0] == &b.Bytes()[0]
	})
	invariants.Check(!again, "a buffer of %d bytes is given back twice", len(b.Bytes()))
}

// Free frees all buffers that are kept.
func (i *Idle) Free() { i.FreeSome(i.bytes) }

// free frees buffers for which which holds, until they had n bytes. It returns their bytes.
func (i *Idle) free(which func(idleBuffer) bool, n int64) (freed int64) {
	i.buffers = slices.DeleteFunc(i.buffers, func(b idleBuffer) bool {
		if freed >= n || !which(b) {
			return false
		}
		freed += int64(len(b.Bytes()))
		b.Free()
		return true
	})
	i.bytes -= freed
	return freed
}
