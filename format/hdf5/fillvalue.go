package hdf5

import "bytes"

const fillPart = "fill value"

// fill returns the fill value of a dataset, as its elements are stored, or nil if none is set.
func (w *walk) fill(h header) ([]byte, error) {
	m := h.get(msgFill)
	if m == nil {
		if m = h.get(msgOldFill); m == nil {
			return nil, nil
		}
		b, err := w.content(m, fillPart)
		if err != nil {
			return nil, err
		}
		return bytes.Clone(b.take(int(b.u32()))), b.err
	}
	b, err := w.content(m, fillPart)
	if err != nil {
		return nil, err
	}
	version, err := b.version(1, 2, 3)
	if err != nil {
		return nil, err
	}
	defined := true
	if version == 3 {
		defined = b.u8()&0x20 != 0
	} else {
		b.take(2) // when space is taken and filled
		defined = b.u8() != 0 || version == 1
	}
	if !defined || b.err != nil {
		return nil, b.err
	}
	size := int32(b.u32())
	if size <= 0 { // undefined, or zeros
		return nil, b.err
	}
	return bytes.Clone(b.take(int(size))), b.err
}
