package hdf5

import (
	"bytes"

	"github.com/chaski-eo/chaski/fault"
)

const localHeapPart = "local heap"

// localHeap returns the data of the local heap at an address: the names of an old group.
func (w *walk) localHeap(addr uint64) (*block, error) {
	b, err := w.signedBlock(localHeapPart, addr, uint64(8+2*w.lengthSize+w.offsetSize), "HEAP", 0)
	if err != nil {
		return nil, err
	}
	b.take(3)
	size := b.length()
	b.length() // of the free list
	data := b.offset()
	if b.err != nil {
		return nil, b.err
	}
	return w.block(localHeapPart, data, size)
}

// nameAt returns the string at an offset of a local heap.
func (w *walk) nameAt(heap *block, off uint64) (string, error) {
	if off >= uint64(len(heap.all)) {
		return "", corrupt(heap.part, heap.addr, "a name at %d of %d bytes", off, len(heap.all))
	}
	text := heap.all[off:]
	end := bytes.IndexByte(text[:min(len(text), maxPath+1)], 0)
	switch {
	case end < 0 && len(text) > maxPath:
		return "", fault.At(fault.Limit, heap.part, int64(heap.addr), "a name of more than %d bytes at %d", maxPath,
			off)
	case end < 0:
		return "", corrupt(heap.part, heap.addr, "a name without an end at %d", off)
	}
	return string(text[:end]), w.spend(heap.part, heap.addr, int64(end))
}
