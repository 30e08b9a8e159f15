package hdf5

import "math/bits"

const extensibleArrayPart = "extensible array"

// extensibleArray is the header of an extensible array. Its entries lie in the index block, then in data blocks that
// double in size. Super block u has 2^(u/2) data blocks of 2^((u+1)/2) times the least entries: the data blocks of the
// first ones are in the index block, and the others in blocks of their own.
type extensibleArray struct {
	elements
	countLen int    // bytes of an offset in the array
	inIndex  uint64 // entries of the index block
	least    uint64 // entries of the smallest data block
	pointers uint64 // the fewest data blocks of a super block of its own
	each     uint64 // entries of a page
	supers   int    // super blocks at most
	used     uint64 // entries that were ever set: the highest number plus one
}

// extensibleArray visits the entries of an extensible array.
func (w *walk) extensibleArray(addr uint64, kind byte, visit func(number uint64, b *block) error) error {
	b, err := w.checkedBlock(extensibleArrayPart, addr, uint64(12+6*w.lengthSize+w.offsetSize+4), "EAHD", 0)
	if err != nil {
		return err
	}
	a := &extensibleArray{elements: elements{w: w, kind: b.u8(), size: int(b.u8()), visit: visit}}
	countBits := int(b.u8())
	a.inIndex, a.least, a.pointers = uint64(b.u8()), uint64(b.u8()), uint64(b.u8())
	pageBits := int(b.u8())
	for range 4 {
		b.length() // numbers and sizes of blocks
	}
	a.used = b.length()
	b.length()
	index := b.offset()
	power := func(n uint64) bool { return n > 0 && n&(n-1) == 0 }
	leastBits := bits.Len64(a.least) - 1
	if b.err != nil || a.kind != kind || a.size < w.offsetSize || !power(a.least) || !power(a.pointers) ||
		countBits > 64 || countBits < leastBits || pageBits > 32 {
		return b.fail("entries of type %d of %d bytes, 2^%d at most, %d in the least block, %d pointers, pages of 2^%d",
			a.kind, a.size, countBits, a.least, a.pointers, pageBits)
	}
	a.countLen, a.each, a.supers = (countBits+7)/8, 1<<pageBits, 1+countBits-leastBits
	if index == undefined {
		return nil
	}
	return a.indexBlock(index)
}

// blocks returns the data blocks of a super block, and the entries of each.
func (a *extensibleArray) blocks(super int) (count, entries uint64) {
	return 1 << (super / 2), a.least << ((super + 1) / 2)
}

// indexBlock visits the entries of the index block, and of what it leads to.
func (a *extensibleArray) indexBlock(addr uint64) error {
	direct := min(2*(bits.Len64(a.pointers)-1), a.supers) // super blocks whose data blocks are in the index block
	w, count := a.w, uint64(0)
	for u := range direct {
		n, _ := a.blocks(u)
		count += n
	}
	superBlocks := a.supers - direct
	size := uint64(6+w.offsetSize) + a.inIndex*uint64(a.size) + (count+uint64(superBlocks))*uint64(w.offsetSize) + 4
	b, err := w.checkedBlock(extensibleArrayPart, addr, size, "EAIB")
	if err != nil {
		return err
	}
	b.take(2 + w.offsetSize)
	if err := a.visitAll(b, 0, a.inIndex); err != nil {
		return err
	}
	first := a.inIndex
	for u := range direct {
		n, entries := a.blocks(u)
		for range n {
			if err := a.dataBlock(b.offset(), first, entries, nil, 0); err != nil {
				return err
			}
			first += entries
		}
	}
	for u := direct; u < a.supers && first < a.used; u++ {
		n, entries := a.blocks(u)
		if err := a.superBlock(b.offset(), first, n, entries); err != nil {
			return err
		}
		first += n * entries
	}
	return b.err
}

// superBlock visits the data blocks of a super block.
func (a *extensibleArray) superBlock(addr, first, count, entries uint64) error {
	if addr == undefined {
		return nil
	}
	w := a.w
	pageCount, bitmap := uint64(0), uint64(0)
	if entries > a.each {
		pageCount = entries / a.each
		bitmap = count * ((pageCount + 7) / 8)
	}
	front := uint64(6 + w.offsetSize + a.countLen)
	if count > maxBlock || pageCount > maxBlock || bitmap > maxBlock {
		return corrupt(extensibleArrayPart, addr, "a super block of %d data blocks of %d entries", count, entries)
	}
	b, err := w.checkedBlock(extensibleArrayPart, addr, front+bitmap+count*uint64(w.offsetSize)+4, "EASB")
	if err != nil {
		return err
	}
	b.take(int(front) - 4)
	written := b.take(int(bitmap))
	for i := range count {
		if err := a.dataBlock(b.offset(), first, entries, written, i*pageCount); err != nil {
			return err
		}
		first += entries
	}
	return b.err
}

// dataBlock visits the entries of a data block. written has the pages that were, from a bit on.
func (a *extensibleArray) dataBlock(addr, first, entries uint64, written []byte, bit uint64) error {
	if addr == undefined || first >= a.used {
		return nil
	}
	if entries > maxChunks {
		return corrupt(extensibleArrayPart, addr, "a data block of %d entries", entries)
	}
	front := uint64(6 + a.w.offsetSize + a.countLen)
	isPaged := entries > a.each
	size := front + 4
	if !isPaged {
		size += entries * uint64(a.size)
	}
	b, err := a.w.checkedBlock(extensibleArrayPart, addr, size, "EADB")
	if err != nil {
		return err
	}
	b.take(int(front) - 4)
	if !isPaged {
		return a.visitAll(b, first, entries)
	}
	return a.pages(extensibleArrayPart, addr+size, first, entries, a.each, func(page uint64) bool {
		return isSet(written, bit+page)
	})
}
