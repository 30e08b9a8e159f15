package hdf5

import (
	"cmp"
	"slices"
)

const globalHeapPart = "global heap"

// element is a value of variable length: some first elements of an object in a global heap collection.
type element struct {
	addr  uint64 // of the collection
	index uint32
	size  int     // bytes
	to    *string // where the value goes
}

// elementCost is the memory of an element, with the header of its value.
const elementCost = 48

// later returns the values of elements of variable length, which are empty until resolve has read them.
func (w *walk) later(t *Datatype, data []byte) ([]string, error) {
	size := 1
	if !t.Text {
		size = t.Base.Size
	}
	list := make([]string, len(data)/t.Size)
	for i := range list {
		b := w.of(globalHeapPart, 0, data[i*t.Size:(i+1)*t.Size])
		count := b.u32()
		e := element{addr: b.offset(), index: b.u32(), size: int(count) * size, to: &list[i]}
		switch {
		case b.err != nil:
			return nil, b.err
		case e.size < 0 || e.size > maxBlock:
			return nil, corrupt(globalHeapPart, e.addr, "%d elements of %d bytes", count, size)
		case count > 0 && e.addr != undefined && e.addr != 0:
			w.elements = append(w.elements, e)
		}
	}
	return list, nil
}

// resolve reads the elements in the order of the file, so each collection is read once, in whatever order they were
// written. Equal ones share their memory.
func (w *walk) resolve() error {
	slices.SortFunc(w.elements, func(a, b element) int {
		return cmp.Or(cmp.Compare(a.addr, b.addr), cmp.Compare(a.index, b.index), cmp.Compare(b.size, a.size))
	})
	var objects map[uint32][]byte
	for i, e := range w.elements {
		last := element{}
		if i > 0 {
			last = w.elements[i-1]
		}
		if e.addr != last.addr {
			var err error
			if objects, err = w.globalHeap(e.addr); err != nil {
				return err
			}
		}
		if e.addr == last.addr && e.index == last.index { // not longer than the last one
			*e.to = (*last.to)[:e.size]
			continue
		}
		object, ok := objects[e.index]
		if !ok || e.size > len(object) {
			return corrupt(globalHeapPart, e.addr, "object %d has %d bytes, %d needed", e.index, len(object), e.size)
		}
		if err := w.keep(globalHeapPart, e.addr, int64(e.size)); err != nil {
			return err
		}
		*e.to = string(object[:e.size])
	}
	w.elements = nil
	return nil
}

// globalHeap reads a global heap collection: the bytes of its objects.
func (w *walk) globalHeap(addr uint64) (map[uint32][]byte, error) {
	front := (8 + w.lengthSize + 7) &^ 7 // of the collection and of each object, filled up to a multiple of 8
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
		b.take(front - 8 - w.lengthSize)
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
