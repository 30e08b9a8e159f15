package openzl

import (
	"math"

	"github.com/zeebo/xxh3"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/codec/openzl/internal/wire"
)

// Format versions that are read.
const (
	minVersion = 8
	maxVersion = 27
	// typedVersion is the first version that says the type of its output; before, it is Serial.
	typedVersion = 14
	// chunkVersion is the first version whose frames are cut into chunks.
	chunkVersion   = 21
	commentVersion = 22
	dictVersion    = 25
)

const (
	magicBase   = 0xD7B1A5C0 // the magic number is this plus the version
	magicAhead  = 64         // magic numbers up to this far ahead belong to future versions
	maxOutputs  = 2048
	maxComment  = 10000
	maxBundleID = 32
)

// frameHeader is the header of a frame, which precedes its chunks.
type frameHeader struct {
	version         int
	contentChecksum bool // chunks end with a checksum of their content
	chunkChecksum   bool // chunks end with a checksum of their stored bytes
	types           []Type
	sizes           []int // bytes of each output, strings without their lengths
	strings         []int // strings of each output; -1 if the header does not say
	comment         []byte
	total           int // sum of sizes
	bundle          bool
}

func headerFault(kind fault.Kind, off int, format string, args ...any) error {
	return fault.At(kind, "frame header", int64(off), format, args...)
}

// typeCodes are the types in the order of their two-bit codes.
var typeCodes = [4]Type{Serial, Struct, Numeric, String}

// parse reads the frame header from c.
func (h *frameHeader) parse(c *wire.Cursor, limit int) error {
	*h = frameHeader{types: h.types[:0], sizes: h.sizes[:0], strings: h.strings[:0]}
	magic := c.U32()
	if c.Bad {
		return headerFault(fault.Corrupt, c.Off, "%d bytes are too short for an OpenZL frame", len(c.B))
	}
	if magic < magicBase || magic > magicBase+magicAhead {
		return headerFault(fault.Corrupt, 0, "magic number %#08x is not OpenZL's", magic)
	}
	h.version = int(magic - magicBase)
	if h.version < minVersion || h.version > maxVersion {
		return headerFault(fault.Unsupported, 0, "openzl format version %d", h.version)
	}
	if h.version >= chunkVersion {
		if err := h.parseFlags(c); err != nil {
			return err
		}
	}
	if err := h.parseTypes(c); err != nil {
		return err
	}
	if err := h.parseSizes(c, limit); err != nil {
		return err
	}
	if h.comment != nil {
		size := c.Varint()
		if size == 0 || size > maxComment {
			return headerFault(fault.Corrupt, c.Off, "comment of %d bytes", size)
		}
		h.comment = c.Take(int(size))
	}
	if h.version >= chunkVersion && h.chunkChecksum {
		sum := byte(xxh3.Hash(c.B[:c.Off]))
		if got := c.Byte(); !c.Bad && got != sum {
			return headerFault(fault.Corrupt, c.Off-1, "checksum %#02x, stored %#02x", sum, got)
		}
	}
	if c.Bad {
		return headerFault(fault.Corrupt, c.Off, "frame ends within its header")
	}
	return nil
}

// isEnd reports whether the frame ends after so many chunks.
func (h *frameHeader) isEnd(c *wire.Cursor, chunks int) (bool, error) {
	if h.version < chunkVersion {
		return chunks == 1, nil
	}
	if c.Left() == 0 {
		return false, fault.At(fault.Corrupt, "frame footer", int64(c.Off), "frame ends without end mark")
	}
	return c.B[c.Off] == 0, nil
}

func (h *frameHeader) parseFlags(c *wire.Cursor) error {
	flags := c.Byte()
	h.contentChecksum = flags&1 != 0
	h.chunkChecksum = flags&2 != 0
	if flags&4 != 0 && h.version >= commentVersion {
		h.comment = []byte{}
	}
	if h.version < dictVersion || flags&8 == 0 {
		return nil
	}
	h.bundle = true
	size := int(c.Byte())
	if size == 0 || size > maxBundleID {
		return headerFault(fault.Corrupt, c.Off, "dictionary bundle id of %d bytes", size)
	}
	zero := true
	for _, value := range c.Take(size) {
		zero = zero && value == 0
	}
	if zero {
		return headerFault(fault.Corrupt, c.Off, "dictionary bundle id is zero")
	}
	return nil
}

// parseTypes reads the number of outputs and their types, two bits each. The first types share the first
// one or two bytes with the number.
func (h *frameHeader) parseTypes(c *wire.Cursor) error {
	if h.version < typedVersion {
		h.types = append(h.types, Serial)
		return nil
	}
	first := c.Byte()
	outputs, inline := 1, 1
	var packed uint32 // types in the leading bytes
	switch {
	case h.version == 14:
		packed = uint32(first)
		if first > 3 {
			return headerFault(fault.Corrupt, c.Off-1, "output type %d", first)
		}
	case h.version < chunkVersion:
		packed = uint32(first & 63)
		outputs, inline = int(first>>6)+1, 3
		if outputs == 4 {
			second := c.Byte()
			packed |= uint32(second&15) << 6
			outputs, inline = int(second>>4)+4, 5
		}
		if outputs == 19 {
			outputs = int(c.Byte()) + 19
		}
		if outputs == 274 {
			outputs = c.U16() + 274
		}
	default:
		packed = uint32(first >> 4)
		outputs, inline = int(first&15), 2
		if outputs == 15 {
			outputs, inline = int(c.Byte())<<4+int(first>>4)+15, 0
		}
	}
	if c.Bad {
		return headerFault(fault.Corrupt, c.Off, "frame ends within its header")
	}
	if outputs == 0 {
		return headerFault(fault.Unsupported, c.Off, "frame without outputs")
	}
	if outputs > maxOutputs {
		return headerFault(fault.Limit, c.Off, "%d outputs, at most %d are read", outputs, maxOutputs)
	}
	rest := c.Bits(max(outputs-inline, 0), 2)
	for i := range outputs {
		if i < inline {
			h.types = append(h.types, typeCodes[packed>>(2*i)&3])
		} else {
			h.types = append(h.types, typeCodes[rest.Next(2)])
		}
	}
	return nil
}

// parseSizes reads the size of every output and, since version 21, the number of strings.
func (h *frameHeader) parseSizes(c *wire.Cursor, limit int) error {
	for i := range h.types {
		var size uint64
		if h.version < chunkVersion {
			size = uint64(c.U32())
		} else {
			pos := c.Off
			if size = c.Varint(); size == 0 && !c.Bad {
				return headerFault(fault.Unsupported, pos, "size of output %d is unknown", i)
			}
			size--
		}
		if c.Bad {
			return headerFault(fault.Corrupt, c.Off, "frame ends within its header")
		}
		// Compared before adding, so the sum of hostile sizes cannot overflow.
		if size > uint64(limit-h.total) {
			return headerFault(fault.Limit, c.Off, "outputs of more than %d bytes", limit)
		}
		h.sizes = append(h.sizes, int(size))
		h.total += int(size)
		h.strings = append(h.strings, -1)
	}
	if h.version < chunkVersion {
		return nil
	}
	for i, kind := range h.types {
		if kind != String {
			continue
		}
		strings := c.Varint()
		if strings > math.MaxInt32 || int(strings) > limit/4 {
			return headerFault(fault.Limit, c.Off, "output %d of %d strings", i, strings)
		}
		h.strings[i] = int(strings)
	}
	return nil
}
