package tiledb

import (
	"encoding/binary"
	"unicode/utf8"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/store/tiledb/filter"
)

// byteCursor reads little-endian fields from the front of b. After the first field that does not fit it
// returns zeros, so a parser checks the error once at its end; bad has the error.
type byteCursor struct {
	b    []byte
	part string
	base int64 // offset of b in the file; fault.NoOffset if b was decoded
	off  int
	bad  error
	x    formatTraits // format of the bytes, where it matters
}

func (c *byteCursor) fail(off int, format string, args ...any) {
	if c.bad == nil {
		c.bad = c.fault(fault.Corrupt, off, format, args...)
	}
}

func (c *byteCursor) fault(kind fault.Kind, off int, format string, args ...any) error {
	pos := int64(off)
	if c.base != fault.NoOffset {
		pos += c.base
	}
	return fault.At(kind, c.part, pos, format, args...)
}

func (c *byteCursor) rest() int { return len(c.b) - c.off }

// take returns the next n bytes, or nil if there are fewer.
func (c *byteCursor) take(n uint64, what string) []byte {
	if c.bad != nil {
		return nil
	}
	if n > uint64(c.rest()) {
		c.fail(c.off, "%s takes %d bytes, %d are left", what, n, c.rest())
		return nil
	}
	taken := c.b[c.off : c.off+int(n)]
	c.off += int(n)
	return taken
}

// number reads a number of 1, 4 or 8 bytes.
func (c *byteCursor) number(size int, what string) uint64 {
	if p := c.take(uint64(size), what); p != nil {
		return cast.Uint(p, size)
	}
	return 0
}

func (c *byteCursor) u8(what string) uint8   { return uint8(c.number(1, what)) }
func (c *byteCursor) u32(what string) uint32 { return uint32(c.number(4, what)) }
func (c *byteCursor) u64(what string) uint64 { return c.number(8, what) }

// u64s reads n numbers. It checks n against the bytes that are left before it allocates.
func (c *byteCursor) u64s(n uint64, what string) []uint64 {
	if n > uint64(c.rest())/8 {
		c.fail(c.off, "%d %s in %d bytes", n, what, c.rest())
	}
	if c.bad != nil {
		return nil
	}
	numbers := make([]uint64, n)
	for i := range numbers {
		numbers[i] = binary.LittleEndian.Uint64(c.b[c.off+8*i:])
	}
	c.off += 8 * int(n)
	return numbers
}

// flag reads a byte that is 0 or 1.
func (c *byteCursor) flag(what string) bool {
	value := c.u8(what)
	if value > 1 {
		c.fail(c.off-1, "%s is %d, 0 or 1 expected", what, value)
	}
	return value == 1
}

// text reads a string that is preceded by its length as a number of eight bytes.
func (c *byteCursor) text(what string) string {
	start := c.off
	return c.string(start, c.u64(what+" length"), what)
}

// name reads a string that is preceded by its length as a number of four bytes.
func (c *byteCursor) name(what string) string {
	start := c.off
	name := c.string(start, uint64(c.u32(what+" length")), what)
	if !utf8.ValidString(name) {
		c.fail(start, "%s is not UTF-8", what)
	}
	return name
}

// string reads n bytes, which a length at start says.
func (c *byteCursor) string(start int, n uint64, what string) string {
	if c.bad == nil && n > maxName {
		c.fail(start, "%s of %d bytes", what, n)
	}
	return string(c.take(n, what))
}

// box reads one interval for each dimension, and checks that the lower end is not above the upper one.
func (c *byteCursor) box(types []Datatype, what string) Box { return c.boxOf(types, what, false) }

// bounds is box for the bounding boxes of coordinates in sparse fragments. TileDB 1.6 compares datetimes as unsigned
// numbers, which puts dates before 1970 behind all others. If its box has both, the lower end is a later date than the
// upper one and the interval is useless; it is read as the full range of the type.
func (c *byteCursor) bounds(types []Datatype, what string) Box {
	return c.boxOf(types, what, !c.x.dimTypes && types[0].kind() == filter.Time)
}

func (c *byteCursor) boxOf(types []Datatype, what string, unsigned bool) Box {
	// An interval has at least two bytes, or two lengths, so nothing is allocated for more than b can hold.
	if c.bad == nil && 2*len(types) > c.rest() {
		c.fail(c.off, "%s takes at least %d bytes, %d are left", what, 2*len(types), c.rest())
	}
	if c.bad != nil {
		return nil
	}
	box := make(Box, len(types))
	for d, typ := range types {
		start := c.off
		if typ == StringASCII {
			box[d] = c.textInterval(what)
		} else if p := c.take(2*uint64(typ.Size()), what); p != nil {
			box[d] = Interval{typ.Coord(p), typ.Coord(p[typ.Size():])}
		}
		if c.bad != nil {
			return nil
		}
		if unsigned && box[d].Lo >= typ.CoordOf(0) && box[d].Hi < typ.CoordOf(0) {
			box[d] = Interval{0, typ.largest()}
		}
		if box[d].Lo > box[d].Hi || nan(typ, box[d].Lo) || nan(typ, box[d].Hi) {
			c.fail(start, "%s of dimension %d is [%s, %s]", what, d, typ.FormatCoord(box[d].Lo),
				typ.FormatCoord(box[d].Hi))
			return nil
		}
	}
	return box
}

// textInterval reads two strings: their length together, the length of the first, and both.
func (c *byteCursor) textInterval(what string) Interval {
	start := c.off
	size, first := c.u64("length of "+what), c.u64("length of the lower end of "+what)
	if c.bad == nil && first > size {
		c.fail(start, "%s: a lower end of %d bytes in %d", what, first, size)
	}
	texts := c.take(size, what)
	if c.bad != nil {
		return Interval{}
	}
	return Interval{textCoord(texts[:first]), textCoord(texts[first:])}
}

// unbounded reports whether i is what bounds makes of a useless interval.
func (t Datatype) unbounded(i Interval) bool {
	return t.kind() == filter.Time && i == Interval{0, t.largest()}
}

func nan(t Datatype, c Coord) bool { return t.Real() && c.float() != c.float() }

// end returns the first error, or one if bytes are left.
func (c *byteCursor) end() error {
	if c.bad == nil && c.rest() > 0 {
		c.fail(c.off, "%d bytes behind its end", c.rest())
	}
	return c.bad
}
