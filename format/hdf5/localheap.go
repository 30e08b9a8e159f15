package hdf5

import "bytes"

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
func (b *block) nameAt(off uint64) (string, error) {
	if off >= uint64(len(b.all)) {
		return "", corrupt(b.part, b.addr, "a name at %d of %d bytes", off, len(b.all))
	}
	end := bytes.IndexByte(b.all[off:], 0)
	if end < 0 {
		return "", corrupt(b.part, b.addr, "a name without an end at %d", off)
	}
	return string(b.all[off : off+uint64(end)]), nil
}
