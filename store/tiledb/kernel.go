package tiledb

import "encoding/binary"

// u64 returns number i of b.
func u64(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }

// fillCells writes copies of value one after the other; len(dst) is a multiple of len(value).
func fillCells(dst, value []byte) {
	for done := copy(dst, value); done > 0 && done < len(dst); done *= 2 {
		copy(dst[done:], dst[:done])
	}
}

// gather writes n cells one after the other that stand stride bytes apart in src, size bytes a cell.
// src has (n-1)*stride+size bytes at least, dst n*size.
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

// copyPlan copies a box of cells from a tile to a result in row-major order of some dimensions. Strides and
// offsets are in cells.
type copyPlan struct {
	n, src, dst []int // per dimension of the result, the last with stride 1: cells, stride in the tile, stride in the result
	from, to    int   // of the first cell
	first, last int   // cells of the tile that the box begins and ends with
}

// each calls f for every run of cells along the last dimension: n cells from cell src of the tile on, stride
// cells apart, to cell dst of the result on. Where both sides go on without a gap runs are joined.
func (p *copyPlan) each(f func(dst, src, n, stride int) error) error {
	d := len(p.n) - 1
	n, stride := p.n[d], p.src[d]
	for d > 0 && p.src[d-1] == n*stride && p.dst[d-1] == n {
		d--
		n *= p.n[d]
	}
	return p.walk(0, d, p.from, p.to, n, stride, f)
}

func (p *copyPlan) walk(d, end, src, dst, n, stride int, f func(dst, src, n, stride int) error) error {
	if d == end {
		return f(dst, src, n, stride)
	}
	for range p.n[d] {
		if err := p.walk(d+1, end, src, dst, n, stride, f); err != nil {
			return err
		}
		src += p.src[d]
		dst += p.dst[d]
	}
	return nil
}

// outside returns the first of the coordinates that is not in an interval, or -1.
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

// loadAll reads the coordinates in b, of which there are len(dst).
func (t Datatype) loadAll(dst []Coord, b []byte) {
	flip := Coord(signBit) // of signed integers: from their own width's sign bit to that of 64 bits
	size := t.Size()
	switch {
	case t.real():
		for i := range dst {
			dst[i] = t.load(b[i*size:])
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
			dst[i] = t.load(b[i*size:])
		}
	}
}
