package hdf5

const fixedArrayPart = "fixed array"

// elements are the entries of a fixed or extensible array, as its header says them.
type elements struct {
	w    *walk
	size int // bytes of an entry
	kind byte
	// visit gets the number of each entry in the file and its bytes.
	visit func(number uint64, b *block) error
}

// visitAll visits count entries that follow each other, from number first on.
func (e *elements) visitAll(b *block, first, count uint64) error {
	for i := range count {
		entry := e.w.of(b.part, b.addr, b.take(e.size))
		if b.err != nil {
			return b.err
		}
		if err := e.visit(first+i, entry); err != nil {
			return err
		}
	}
	return nil
}

// pages visits the entries of pages. Only pages with a bit in init are written. addr is the address of the first.
func (e *elements) pages(part string, addr, first, count, each uint64, isWritten func(page uint64) bool) error {
	for page := uint64(0); page*each < count; page++ {
		if err := e.w.spend(part, addr, 1); err != nil {
			return err
		}
		n := min(each, count-page*each)
		size := n*uint64(e.size) + 4
		if isWritten(page) {
			b, err := e.w.block(part, addr, size)
			if err != nil {
				return err
			}
			if err := b.checked(); err != nil {
				return err
			}
			if err := e.visitAll(b, first+page*each, n); err != nil {
				return err
			}
		}
		addr += size
	}
	return nil
}

// isSet reports whether a bit is set. Bit 0 is the highest one of the first byte.
func isSet(b []byte, bit uint64) bool { return bit/8 < uint64(len(b)) && b[bit/8]&(0x80>>(bit%8)) != 0 }

// fixedArray visits the entries of a fixed array.
func (w *walk) fixedArray(addr uint64, kind byte, visit func(number uint64, b *block) error) error {
	b, err := w.checkedBlock(fixedArrayPart, addr, uint64(8+w.lengthSize+w.offsetSize+4), "FAHD", 0)
	if err != nil {
		return err
	}
	e := &elements{w: w, kind: b.u8(), size: int(b.u8()), visit: visit}
	pageBits := b.u8()
	count, data := b.length(), b.offset()
	if b.err != nil || e.kind != kind || e.size < w.offsetSize || pageBits > 32 {
		return b.fail("entries of type %d of %d bytes, pages of 2^%d", e.kind, e.size, pageBits)
	}
	if data == undefined {
		return nil
	}
	front := uint64(4 + 1 + 1 + w.offsetSize)
	each := uint64(1) << pageBits
	if count <= each {
		return w.fixedBlock(e, data, front+count*uint64(e.size)+4, front, count)
	}
	if count > maxBlock { // each block takes a bit of a bit map, and bytes of the file
		return b.fail("%d entries", count)
	}
	pageCount := (count + each - 1) / each
	bitmap := (pageCount + 7) / 8
	if err := w.fixedBlock(e, data, front+bitmap+4, front, 0); err != nil {
		return err
	}
	written, err := w.read(fixedArrayPart, data+front, bitmap)
	if err != nil {
		return err
	}
	return e.pages(fixedArrayPart, data+front+bitmap+4, 0, count, each, func(page uint64) bool {
		return isSet(written, page)
	})
}

// fixedBlock checks a data block and visits its entries.
func (w *walk) fixedBlock(e *elements, addr, size, front, count uint64) error {
	b, err := w.checkedBlock(fixedArrayPart, addr, size, "FADB")
	if err != nil {
		return err
	}
	b.take(int(front) - 4)
	return e.visitAll(b, 0, count)
}
