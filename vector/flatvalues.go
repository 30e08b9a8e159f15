package vector

import (
	"encoding/binary"
	"math"

	"github.com/chaski-eo/chaski/fault"
)

// Types of columns of FlatGeobuf.
const (
	flatBool   = 2
	flatULong  = 8
	flatFloat  = 9
	flatDouble = 10
	flatString = 11
	flatBinary = 14
)

// flatWidths are the bytes of the values of types 0 to 10: Byte, UByte, Bool, Short, UShort, Int, UInt, Long, ULong,
// Float, Double. The others, up to flatBinary, have their length before them.
var flatWidths = [...]int{1, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8}

// flatCells collects the values of one column.
type flatCells struct {
	types []byte // of all columns
	at    int    // which of them is collected
	v     Values
	codes codes
}

// newFlatCells returns the collector of a column; nil without a name.
func newFlatCells(f *flatBuffer, header flatTable, name string) (*flatCells, error) {
	if name == "" {
		return nil, nil
	}
	c := &flatCells{at: -1}
	c.codes = codes{v: &c.v, of: map[string]uint32{}}
	pos, n := f.vector(header, 7, 4)
	var names []string // for the error: some are enough
	for i := range n {
		t := f.table(f.follow(pos + 4*i))
		text := f.bytes(t, 0)
		kind := f.number(t, 1, 1, 0)
		if f.err != nil {
			return nil, f.err
		}
		if kind > flatBinary {
			return nil, fault.New(fault.Unsupported, "header", fault.NoOffset, "column %d has the type %d", i, kind)
		}
		if string(text) == name && c.at < 0 {
			c.at = i
		}
		if c.types = append(c.types, byte(kind)); len(names) < 100 {
			names = append(names, string(text[:min(len(text), maxName)]))
		}
	}
	if c.at < 0 {
		return nil, fault.New(fault.NotFound, "column "+name, fault.NoOffset, "the file has none; it has %q", names)
	}
	if c.types[c.at] > flatString {
		return nil, fault.New(fault.Unsupported, "column "+name, fault.NoOffset, "holds no numbers and no strings")
	}
	return c, nil
}

// find returns the bytes of the value of the column in the properties of a feature; false if they lack it.
func (c *flatCells) find(p []byte) ([]byte, bool, error) {
	for len(p) > 0 {
		if len(p) < 2 || int(binary.LittleEndian.Uint16(p)) >= len(c.types) {
			return nil, false, fault.New(fault.Corrupt, "properties", fault.NoOffset, "a column that the header lacks")
		}
		k, n := int(binary.LittleEndian.Uint16(p)), 0
		p = p[2:]
		if kind := int(c.types[k]); kind < len(flatWidths) {
			n = flatWidths[kind]
		} else if len(p) >= 4 {
			n = int(binary.LittleEndian.Uint32(p))
			p = p[4:]
		} else {
			n = 4 // more than the buffer has
		}
		if n > len(p) {
			return nil, false, fault.New(fault.Corrupt, "properties", fault.NoOffset, "a value ends early")
		}
		if k == c.at {
			return p[:n], true, nil
		}
		p = p[n:]
	}
	return nil, false, nil
}

// add adds the value of the next feature.
func (c *flatCells) add(properties []byte) (err error) {
	data, ok, err := c.find(properties)
	if err != nil {
		return err
	}
	c.v.null = append(c.v.null, !ok)
	kind := c.types[c.at]
	if kind == flatString {
		code := uint32(0)
		if ok {
			code, err = c.codes.code(data)
		}
		c.v.Codes = append(c.v.Codes, code)
		return err
	}
	var word [8]byte
	copy(word[:], data)
	bits := binary.LittleEndian.Uint64(word[:])
	switch kind {
	case flatFloat:
		c.v.Floats = append(c.v.Floats, float64(math.Float32frombits(uint32(bits))))
		return nil
	case flatDouble:
		c.v.Floats = append(c.v.Floats, math.Float64frombits(bits))
		return nil
	case flatULong:
		if int64(bits) < 0 {
			return fault.New(fault.Limit, "column", fault.NoOffset, "a number over 2^63-1")
		}
	case flatBool:
		bits = min(bits, 1)
	}
	c.v.Ints = append(c.v.Ints, flatInt(kind, bits))
	return nil
}

// flatInt returns a whole number of a type from its bits.
func flatInt(kind byte, bits uint64) int64 {
	switch kind {
	case 0: // Byte
		return int64(int8(bits))
	case 3: // Short
		return int64(int16(bits))
	case 5: // Int
		return int64(int32(bits))
	}
	return int64(bits)
}

// values returns the values of all features.
func (c *flatCells) values() *Values {
	if c == nil {
		return nil
	}
	if c.types[c.at] == flatString {
		c.codes.sort()
	}
	return &c.v
}
