package hdf5

const globalHeapPart = "global heap"

// collection is a global heap collection: values of variable length.
type collection struct {
	addr    uint64
	objects map[uint32][]byte
}

// globalObject returns an object of the global heap collection at an address.
func (w *walk) globalObject(addr uint64, index uint32) ([]byte, error) {
	if w.heap.objects == nil || w.heap.addr != addr {
		objects, err := w.globalHeap(addr)
		if err != nil {
			return nil, err
		}
		w.heap = collection{addr, objects}
	}
	object, ok := w.heap.objects[index]
	if !ok {
		return nil, corrupt(globalHeapPart, addr, "no object %d", index)
	}
	return object, nil
}

// globalHeap reads a global heap collection.
func (w *walk) globalHeap(addr uint64) (map[uint32][]byte, error) {
	front := 8 + w.lengthSize // of the collection and of each object
	head, err := w.signedBlock(globalHeapPart, addr, uint64(front), "GCOL", 1)
	if err != nil {
		return nil, err
	}
	head.take(3)
	b, err := w.block(globalHeapPart, addr, head.length())
	if err != nil {
		return nil, err
	}
	b.take(front)
	objects := map[uint32][]byte{}
	for b.rest() >= front {
		id := uint32(b.u16())
		b.take(6)
		size := b.length()
		if id == 0 { // the space that is left
			break
		}
		if size > uint64(b.rest()) {
			return nil, b.fail("object %d of %d bytes, %d are left", id, size, b.rest())
		}
		objects[id] = b.take(int(size))
		b.take(min(-int(size)&7, b.rest()))
	}
	return objects, b.err
}
