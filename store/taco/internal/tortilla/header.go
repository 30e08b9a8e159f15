package tortilla

import (
	"encoding/binary"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
)

// headerSize is the size of the header, and so the smallest offset of anything else.
const headerSize = 200

// The magic numbers.
const (
	magicTortilla = "#y"
	magicTACO     = "WX"
)

// span is a byte range.
type span = model.Span

// Header is the fixed first part of a container: magic number, FO, FL, DP, and for a TACO CO and
// CL.
type Header struct {
	TACO       bool
	Footer     span
	Partitions uint64 // number of files that the container is split into
	Collection span   // of a TACO
}

// ParseHeader parses the header of a container of size bytes. b has its first bytes.
func ParseHeader(b []byte, size int64) (Header, error) {
	var h Header
	bad := func(part string, off int64, format string, args ...any) (Header, error) {
		return h, fault.New(fault.Corrupt, "header "+part, off, format, args...)
	}
	if len(b) < 2 || string(b[:2]) != magicTortilla && string(b[:2]) != magicTACO {
		return bad("magic number", 0, "is neither that of a Tortilla nor of a TACO")
	}
	if len(b) < headerSize || size < headerSize {
		return bad("", 0, "%d bytes, %d are needed", min(int64(len(b)), size), headerSize)
	}
	h.TACO = string(b[:2]) == magicTACO
	place := func(at int) span {
		return span{Off: int64(binary.LittleEndian.Uint64(b[at:])),
			Size: int64(binary.LittleEndian.Uint64(b[at+8:]))}
	}
	h.Footer = place(2)
	h.Partitions = binary.LittleEndian.Uint64(b[18:])
	if !h.Footer.In(headerSize, size) || h.Footer.Size == 0 {
		return bad("footer", 2, "%d bytes at %d in %d bytes", uint64(h.Footer.Size), uint64(h.Footer.Off), size)
	}
	if !h.TACO {
		return h, nil
	}
	h.Collection = place(26)
	if !h.Collection.In(headerSize, size) || h.Collection.Size == 0 {
		return bad("COLLECTION", 26, "%d bytes at %d in %d bytes", uint64(h.Collection.Size),
			uint64(h.Collection.Off), size)
	}
	return h, nil
}
