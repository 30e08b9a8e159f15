package hdf5

const globalHeapPart = "global heap"

// globalObject returns an object of a global heap collection: a value of variable length.
func (w *walk) globalObject(addr uint64, index uint32) ([]byte, error) {
	if w.collection == nil || w.collectionAddr != addr {
		b, err := w.block(globalHeapPart, addr, uint64(8+w.lengthSize))
		if err != nil {
			return nil, err
		}
		if err := b.signature("GCOL"); err != nil {
			return nil, err
		}
		if _, err := b.version(1); err != nil {
			return nil, err
		}
		b.take(3)
		if w.collection, err = w.read(globalHeapPart, addr, b.length()); err != nil {
			return nil, err
		}
		w.collectionAddr = addr
	}
	b := w.of(globalHeapPart, addr, w.collection)
	b.take(8 + w.lengthSize)
	for b.rest() >= 8+w.lengthSize {
		id := b.u16()
		b.take(6)
		size := b.length()
		if id == 0 { // the space that is left
			break
		}
		if b.err != nil || size > uint64(b.rest()) {
			return nil, b.fail("object %d of %d bytes, %d are left", id, size, b.rest())
		}
		if uint32(id) == index {
			return b.take(int(size)), b.err
		}
		b.take(min(int(size+7)&^7, b.rest()))
	}
	return nil, b.fail("no object %d", index)
}
