package resources

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

// heap is a Buffer that the garbage collector frees.
type heap []byte

// NewHeap returns n bytes that the garbage collector frees.
func NewHeap(n int) Buffer { return heap(cast.Aligned(n)) }

// Bytes implements Buffer.
func (h heap) Bytes() []byte { return h }

// Free implements Buffer. The garbage collector frees the memory.
func (heap) Free() {}
