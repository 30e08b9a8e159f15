package tiledb

import "encoding/binary"

// u64 returns the i-th number of b.
func u64(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }

// fillCells fills dst with copies of value. len(dst) must be a multiple of len(value).
func fillCells(dst, value []byte) {
	for done := copy(dst, value); done > 0 && done < len(dst); done *= 2 {
		copy(dst[done:], dst[:done])
	}
}

// gather copies n cells of size bytes that are stride bytes apart in src. src must have at least
// (n-1)*stride+size bytes, and dst n*size.
func gather(dst, src []byte, n, stride, size int) {
	switch size {
	case 1:
		for i := range dst[:n] {
			dst[i] = src[i*stride]
		}
	case 2:
		for i := range n {
			binary.LittleEndian.PutUint16(dst[2*i:2*i+2], binary.LittleEndian.Uint16(src[i*stride:]))
		}
	case 4:
		for i := range n {
			binary.LittleEndian.PutUint32(dst[4*i:4*i+4], binary.LittleEndian.Uint32(src[i*stride:]))
		}
	case 8:
		for i := range n {
			binary.LittleEndian.PutUint64(dst[8*i:8*i+8], binary.LittleEndian.Uint64(src[i*stride:]))
		}
	default:
		for i := range n {
			copy(dst[i*size:(i+1)*size], src[i*stride:])
		}
	}
}

// outside returns the index of the first coordinate outside an interval, or -1.
func outside(c []Coord, i Interval) int {
	for row, v := range c {
		if v < i.Lo || v > i.Hi {
			return row
		}
	}
	return -1
}

// keepWithin keeps the rows whose coordinate lies in an interval.
func keepWithin(rows []int, c []Coord, i Interval) []int {
	n := 0
	for _, row := range rows {
		rows[n] = row
		if v := c[row]; i.Lo <= v && v <= i.Hi {
			n++
		}
	}
	return rows[:n]
}

// loadAll decodes len(dst) coordinates of b.
func (t Datatype) loadAll(dst []Coord, b []byte) {
	flip := Coord(signBit) // moves the sign bit of signed integers from their own width to 64 bits
	size := t.Size()
	switch {
	case t.Real():
		for i := range dst {
			dst[i] = t.Coord(b[i*size:])
		}
		return
	case t.unsigned():
		flip = 0
	}
	switch {
	case size == 8:
		for i := range dst {
			dst[i] = Coord(u64(b, i)) ^ flip
		}
	case size == 4 && flip == 0:
		for i := range dst {
			dst[i] = Coord(binary.LittleEndian.Uint32(b[4*i:]))
		}
	case size == 4:
		for i := range dst {
			dst[i] = Coord(int64(int32(binary.LittleEndian.Uint32(b[4*i:])))) ^ flip
		}
	default:
		for i := range dst {
			dst[i] = t.Coord(b[i*size:])
		}
	}
}
