package openzl

import (
	"encoding/binary"
	"math/bits"
)

// cursor reads a byte slice from front to back. A read past the end, or a number that does not
// fit, sets bad and gives zero; the caller looks at bad once in a while.
type cursor struct {
	b   []byte
	off int
	bad bool
}

func (c *cursor) left() int { return len(c.b) - c.off }

// take returns the next n bytes without copying them.
func (c *cursor) take(n int) []byte {
	if n < 0 || n > c.left() {
		c.bad = true
		return nil
	}
	s := c.b[c.off : c.off+n]
	c.off += n
	return s
}

func (c *cursor) byte() byte {
	if c.off >= len(c.b) {
		c.bad = true
		return 0
	}
	v := c.b[c.off]
	c.off++
	return v
}

func (c *cursor) u16() int {
	if s := c.take(2); s != nil {
		return int(binary.LittleEndian.Uint16(s))
	}
	return 0
}

func (c *cursor) u32() uint32 {
	if s := c.take(4); s != nil {
		return binary.LittleEndian.Uint32(s)
	}
	return 0
}

// varint reads an unsigned LEB128 number of at most 64 bits.
func (c *cursor) varint() uint64 {
	v, n := binary.Uvarint(c.b[c.off:])
	if n <= 0 {
		c.bad = true
		return 0
	}
	c.off += n
	return v
}

// bitReader reads numbers of a fixed number of bits, lowest bit first, from the next whole bytes
// of a cursor.
type bitReader struct {
	b   []byte
	pos uint
}

// bits opens n numbers of width bits each.
func (c *cursor) bits(n, width int) bitReader {
	return bitReader{b: c.take((n*width + 7) / 8)}
}

// next reads one number of at most 32 bits. Past the end it gives zero.
func (r *bitReader) next(width int) uint32 {
	var v uint64
	for i := range 5 {
		if p := int(r.pos>>3) + i; p < len(r.b) {
			v |= uint64(r.b[p]) << (8 * i)
		}
	}
	v >>= r.pos & 7
	r.pos += uint(width)
	return uint32(v & (1<<width - 1))
}

// bitsFor returns the bits that hold every number below n.
func bitsFor(n int) int {
	if n <= 1 {
		return 0
	}
	return bits.Len(uint(n - 1))
}
