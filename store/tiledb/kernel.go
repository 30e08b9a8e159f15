package tiledb

import "encoding/binary"

// u64 returns the i-th number of b.
func u64(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }

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
	kept := 0
	for _, row := range rows {
		rows[kept] = row
		if v := c[row]; i.Lo <= v && v <= i.Hi {
			kept++
		}
	}
	return rows[:kept]
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
