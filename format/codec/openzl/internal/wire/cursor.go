// Package wire reads and writes the numbers of an OpenZL frame: bytes, little-endian numbers, LEB128
// numbers (varints) and numbers packed into a fixed count of bits, lowest bit first.
package wire

import (
	"encoding/binary"
	"math/bits"
)

// Cursor reads B from front to back. A read past the end, or of a number that does not fit, sets Bad
// and returns zero. Callers may read several fields and check Bad once.
type Cursor struct {
	B   []byte
	Off int
	Bad bool
}

// Left returns how many bytes are left.
func (c *Cursor) Left() int { return len(c.B) - c.Off }

// Take returns the next n bytes without copying them.
func (c *Cursor) Take(n int) []byte {
	if n < 0 || n > c.Left() {
		c.Bad = true
		return nil
	}
	taken := c.B[c.Off : c.Off+n]
	c.Off += n
	return taken
}

// Byte reads one byte.
func (c *Cursor) Byte() byte {
	if c.Off >= len(c.B) {
		c.Bad = true
		return 0
	}
	value := c.B[c.Off]
	c.Off++
	return value
}

// U16 reads two bytes as a number.
func (c *Cursor) U16() int {
	if taken := c.Take(2); taken != nil {
		return int(binary.LittleEndian.Uint16(taken))
	}
	return 0
}

// U32 reads four bytes as a number.
func (c *Cursor) U32() uint32 {
	if taken := c.Take(4); taken != nil {
		return binary.LittleEndian.Uint32(taken)
	}
	return 0
}

// Varint reads an unsigned LEB128 number of at most 64 bits.
func (c *Cursor) Varint() uint64 {
	value, size := binary.Uvarint(c.B[c.Off:])
	if size <= 0 {
		c.Bad = true
		return 0
	}
	c.Off += size
	return value
}

// Bits takes the whole bytes that n numbers of width bits each are packed into.
func (c *Cursor) Bits(n, width int) BitReader {
	return BitReader{B: c.Take((n*width + 7) / 8)}
}

// BitReader reads packed numbers from B.
type BitReader struct {
	B   []byte
	pos uint // in bits
}

// Next reads one number of at most 32 bits. Bits past the end are zero.
func (r *BitReader) Next(width int) uint32 {
	var value uint64
	// 32 bits that start in the middle of a byte reach into a fifth byte.
	for i := range 5 {
		if index := int(r.pos>>3) + i; index < len(r.B) {
			value |= uint64(r.B[index]) << (8 * i)
		}
	}
	value >>= r.pos & 7
	r.pos += uint(width)
	return uint32(value & (1<<width - 1))
}

// BitsFor returns how many bits hold every number below n.
func BitsFor(n int) int {
	if n <= 1 {
		return 0
	}
	return bits.Len(uint(n - 1))
}
