package batch

import (
	"github.com/chaski-eo/chaski/internal/cast"
)

// Buffer is memory for one batch.
type Buffer interface {
	// Bytes returns the memory, the same in each call. Its address is divisible by 64.
	Bytes() []byte
	// Free releases the memory. It is called once, and the bytes are not used afterwards.
	Free()
}

// Owner is another process that a Buffer is shared with. It may write to the memory at any time from then on, so the
// memory must only ever hold batches for this owner.
type Owner interface {
	// Over reports whether the owner is gone. Its memory is not used again.
	Over() bool
}

// Owned is a Buffer that may have an Owner.
type Owned interface {
	Buffer
	// Owner returns who else can write to the memory, or nil for nobody.
	Owner() Owner
}

// ownerOf returns the owner of b, or nil.
func ownerOf(b Buffer) Owner {
	if o, ok := b.(Owned); ok {
		return o.Owner()
	}
	return nil
}

// Reusable reports whether b may hold another batch: its owner, if it has one, is still there.
func Reusable(b Buffer) bool {
	o := ownerOf(b)
	return o == nil || !o.Over()
}

// heap is a Buffer that the garbage collector frees.
type heap []byte

// NewHeap returns n bytes that the garbage collector frees.
func NewHeap(n int) Buffer { return heap(cast.Aligned(n)) }

// Bytes implements Buffer.
func (h heap) Bytes() []byte { return h }

// Free implements Buffer. The garbage collector frees the memory.
func (heap) Free() {}
