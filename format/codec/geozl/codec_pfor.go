package geozl

import (
	"encoding/binary"

	"github.com/chaski-eo/chaski/format/codec/geozl/internal/kernel"
	"github.com/chaski-eo/chaski/format/codec/openzl"
	"github.com/chaski-eo/chaski/internal/cast"
)

// decodePfor unpacks blocks of 256 numbers. The header is how many numbers there are, and their
// width.
func decodePfor(c *openzl.Call) error {
	header := c.Header
	if len(header) != 9 {
		return c.Corrupt("header of %d bytes", len(header))
	}
	_, err := unpfor(c, header)
	return err
}

// unpfor unpacks the numbers, whose count and width are at the front of header.
func unpfor(c *openzl.Call, header []byte) ([]byte, error) {
	src := c.In[0].Data
	count, width := binary.LittleEndian.Uint64(header), int(header[8])
	if !cast.IsWidth(width) {
		return nil, c.Corrupt("numbers of %d bytes", width)
	}
	// A block of 256 numbers has at least two bytes, so count is bounded by the bytes present.
	if count > uint64(len(src))*(kernel.PforBlock/2) || count == 0 && len(src) > 0 {
		return nil, c.Corrupt("%d numbers in %d bytes", count, len(src))
	}
	dst, err := c.Make(0, width, int(count))
	if err != nil {
		return nil, err
	}
	if !kernel.Pfor(dst, src, width) {
		return nil, c.Corrupt("blocks are not those of %d numbers", count)
	}
	return dst, nil
}

// decodePlanarZigzagPfor is pfor, then planar_zigzag. The header is the header of pfor with, after it,
// the width of a row and the number of planes.
func decodePlanarZigzagPfor(c *openzl.Call) error {
	header := c.Header
	if len(header) != 17 {
		return c.Corrupt("header of %d bytes", len(header))
	}
	dst, err := unpfor(c, header)
	if err != nil {
		return err
	}
	size := int(header[8])
	shape, err := gridOf(c, binary.LittleEndian.Uint32(header[9:]), header[13:], len(dst)/size)
	if err != nil {
		return err
	}
	planarZigzag.run(dst, dst, size, shape)
	return nil
}
