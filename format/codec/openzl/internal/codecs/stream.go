// Package codecs decodes the standard codecs of OpenZL. Each codec is one file with a binding, which
// checks the inputs and allocates the outputs through a Call, and a kernel in package kernel, which is
// a plain loop over slices. Standard lists them all. The package knows nothing of frames and graphs.
package codecs

import (
	"github.com/chaski-eo/chaski/format/codec/openzl/internal/memory"
	"github.com/chaski-eo/chaski/internal/cast"
)

// Type is the type of a stream and of an output.
type Type uint8

// Types. Their values are private to this module.
const (
	Serial  Type = iota + 1 // bytes
	Struct                  // elements of one width, of any width from 1 up
	Numeric                 // integers of 1, 2, 4 or 8 bytes, little-endian
	String                  // byte strings of any lengths
)

// String returns "serial", "struct", "numeric" or "string".
func (t Type) String() string {
	switch t {
	case Serial:
		return "serial"
	case Struct:
		return "struct"
	case Numeric:
		return "numeric"
	case String:
		return "string"
	}
	return "invalid"
}

// Stream is typed data that a codec regenerates or the chunk stores.
type Stream struct {
	Type    Type
	Direct  bool   // Data lies in Workspace.Direct; before it is made: it may lie there
	Width   int    // bytes per element: 1 for Serial, 0 for String
	Count   int    // elements
	Data    []byte // for String the strings end to end
	Lens    []uint32
	Buf     *memory.Buffer[byte] // behind Data; nil if Data is part of the frame or of Direct
	LensBuf *memory.Buffer[uint32]
}

// Drop gives the memory of s back.
func (s *Stream) Drop(m *memory.Memory) {
	if s.Buf != nil {
		m.Bytes.Release(s.Buf)
	}
	if s.LensBuf != nil {
		m.Lens.Release(s.LensBuf)
	}
	s.Buf, s.LensBuf, s.Data, s.Lens = nil, nil, nil, nil
}

// aligned reports whether numbers of width bytes can be read from data in place.
func aligned(data []byte, width int) bool {
	var ok bool
	switch width {
	case 1:
		return true
	case 2:
		_, ok = cast.Of[uint16](data)
	case 4:
		_, ok = cast.Of[uint32](data)
	case 8:
		_, ok = cast.Of[uint64](data)
	}
	return ok
}
