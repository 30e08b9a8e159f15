// Package cursor reads chaski's own small binary formats (index blobs, states of statistics). Fixed-size
// numbers are little-endian; others are base-128 varints, least significant group first, in their
// shortest form. Reading allocates nothing.
package cursor

import (
	"encoding/binary"
	"math/bits"

	"github.com/chaski-eo/chaski/fault"
)

// Cursor reads B from front to back. After the first error, Err is set and all methods return zeros.
type Cursor struct {
	B    []byte
	At   int    // bytes read
	Part string // the name of the bytes in errors
	Err  error  // the first error: of package fault, at the offset it was found at
}

// Fail sets Err, at the current offset, unless it is set.
func (c *Cursor) Fail(kind fault.Kind, format string, args ...any) {
	if c.Err == nil {
		c.Err = fault.At(kind, c.Part, int64(c.At), format, args...)
	}
}

// Bytes returns the next n bytes, which are not copied; nil after an error. n is not negative.
func (c *Cursor) Bytes(n int) []byte {
	if c.Err == nil && n > len(c.B)-c.At {
		c.Fail(fault.Corrupt, "ends early")
	}
	if c.Err != nil {
		return nil
	}
	c.At += n
	return c.B[c.At-n : c.At]
}

// Magic reads a magic string, which must match, and a version byte.
func (c *Cursor) Magic(magic, what string) (version byte) {
	if m := c.Bytes(len(magic)); c.Err == nil && string(m) != magic {
		c.At -= len(magic)
		c.Fail(fault.Corrupt, "not %s", what)
	}
	return c.U8()
}

// U8 reads a byte.
func (c *Cursor) U8() byte {
	if b := c.Bytes(1); b != nil {
		return b[0]
	}
	return 0
}

// U64 reads 8 bytes as a number.
func (c *Cursor) U64() uint64 {
	if b := c.Bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// Uvarint reads a varint. A varint that is longer than needed, or has more than 64 bits, is an error.
func (c *Cursor) Uvarint() uint64 {
	if c.Err != nil {
		return 0
	}
	v, n := binary.Uvarint(c.B[c.At:])
	if n <= 0 || n != UvarintLen(v) {
		c.Fail(fault.Corrupt, "not a number in its shortest form")
		return 0
	}
	c.At += n
	return v
}

// Varint reads a zigzag varint.
func (c *Cursor) Varint() int64 { return Unzigzag(c.Uvarint()) }

// End fails if bytes are left.
func (c *Cursor) End() {
	if n := len(c.B) - c.At; n > 0 {
		c.Fail(fault.Corrupt, "%d bytes too many", n)
	}
}

// UvarintLen returns the bytes of a number as a varint.
func UvarintLen(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

// Zigzag returns a signed number as an unsigned one: 2v, or -2v-1 where v < 0.
func Zigzag(v int64) uint64 { return uint64(v)<<1 ^ uint64(v>>63) }

// Unzigzag undoes Zigzag.
func Unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }
