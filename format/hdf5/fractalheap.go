package hdf5

import (
	"errors"
	"math"
	"math/bits"
)

const fractalHeapPart = "fractal heap"

// fractalHeap is the header of a fractal heap: links and attributes of objects that have many.
type fractalHeap struct {
	w         *walk
	addr      uint64
	idSize    int
	checksums bool // of direct blocks
	most      uint64
	width     uint64 // blocks of a row of the doubling table
	start     uint64 // bytes of a block of the first row
	direct    uint64 // bytes of the largest direct block
	heapBits  int    // of the offsets in the heap
	root      uint64
	rows      int // of the root, 0 if it is a direct block
}

// fractalHeap reads the header of a fractal heap.
func (w *walk) fractalHeap(addr uint64) (*fractalHeap, error) {
	size := uint64(4 + 1 + 2 + 2 + 1 + 4 + 12*w.lengthSize + 3*w.offsetSize + 2 + 2 + 2 + 2 + 4)
	b, err := w.signedBlock(fractalHeapPart, addr, size, "FRHP", 0)
	if err != nil {
		return nil, err
	}
	h := &fractalHeap{w: w, addr: addr, idSize: b.u16()}
	if b.u16() != 0 {
		return nil, unsupported(fractalHeapPart, "filters of the heap")
	}
	h.checksums = b.u8()&2 != 0
	h.most = b.uint(4)
	b.length() // of the next huge object
	b.offset() // of the index of huge objects
	b.length()
	b.offset() // of the free space
	for range 8 {
		b.length() // statistics
	}
	h.width, h.start, h.direct = b.uint(2), b.length(), b.length()
	h.heapBits = b.u16()
	b.take(2)
	h.root, h.rows = b.offset(), b.u16()
	if err := b.checked(); err != nil {
		return nil, err
	}
	power := func(n uint64) bool { return n > 0 && n&(n-1) == 0 && n <= maxBlock }
	powers := power(h.width) && power(h.start) && power(h.direct)
	if !powers || h.direct < h.start || h.rows > 64 ||
		h.heapBits < 1 || h.heapBits > 64 {
		return nil, b.fail("blocks of %d to %d bytes in rows of %d, offsets of %d bits", h.start, h.direct, h.width,
			h.heapBits)
	}
	return h, nil
}

// errHuge is returned for an object that is not in the blocks of its heap.
var errHuge = errors.New("a huge object")

// object returns the object of an ID, or errHuge.
func (h *fractalHeap) object(id []byte) ([]byte, error) {
	b := h.w.of(fractalHeapPart, h.addr, id)
	switch flags := b.u8(); {
	case b.err != nil:
		return nil, b.err
	case flags>>6 != 0:
		return nil, unsupported(fractalHeapPart, "version %d of the ID", flags>>6)
	case flags>>4&3 == 2: // tiny: the ID has it
		n := int(flags&0x0f) + 1
		if h.idSize > 18 {
			n = int(flags&0x0f)<<8 + int(b.u8()) + 1
		}
		return b.take(n), b.err
	case flags>>4&3 != 0:
		return nil, errHuge
	}
	directBits := bits.Len64(h.direct) - 1
	off := b.uint(min((h.heapBits+7)/8, 8))
	n := b.uint(min((directBits+7)/8, encodedSize(h.most)))
	if b.err != nil {
		return nil, b.err
	}
	if h.rows == 0 {
		return h.inBlock(h.root, off, n, h.start)
	}
	return h.inRows(h.root, off, n, h.rows, 0)
}

// inBlock returns n bytes at an offset of a direct block.
func (h *fractalHeap) inBlock(addr, off, n, size uint64) ([]byte, error) {
	if off > size || n > size-off {
		return nil, corrupt(fractalHeapPart, addr, "an object of %d bytes at %d of %d", n, off, size)
	}
	if addr == undefined || addr > math.MaxInt64 {
		return nil, corrupt(fractalHeapPart, h.addr, "an object in a block that does not exist")
	}
	if h.checksums {
		if _, err := h.w.signedBlock(fractalHeapPart, addr, min(size, 5), "FHDB"); err != nil {
			return nil, err
		}
	}
	return h.w.read(fractalHeapPart, addr+off, n)
}

// inRows returns n bytes at an offset of an indirect block.
func (h *fractalHeap) inRows(addr, off, n uint64, rows, depth int) ([]byte, error) {
	row := 0
	if off >= h.start*h.width {
		row = bits.Len64(off / (h.start * h.width)) // rows double the bytes of all rows before them
	}
	if row >= rows || depth > maxDepth {
		return nil, corrupt(fractalHeapPart, addr, "an object at %d lies outside of %d rows", off, rows)
	}
	size := h.start << max(row-1, 0) // of a block
	if row > 0 {
		off -= h.start * h.width << (row - 1)
	}
	column := off / size
	off %= size
	// Entries of direct blocks and of indirect ones are addresses alike, as the heap has no filters.
	front := uint64(4 + 1 + h.w.offsetSize + (h.heapBits+7)/8)
	entry := front + (uint64(row)*h.width+column)*uint64(h.w.offsetSize)
	if _, err := h.w.signedBlock(fractalHeapPart, addr, 5, "FHIB"); err != nil {
		return nil, err
	}
	b, err := h.w.block(fractalHeapPart, addr+entry, uint64(h.w.offsetSize))
	if err != nil {
		return nil, err
	}
	child := b.offset()
	if size <= h.direct {
		return h.inBlock(child, off, n, size)
	}
	below := bits.Len64(size / (h.start * h.width)) // the rows of a block of that size
	return h.inRows(child, off, n, below, depth+1)
}
