package openzl

import (
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/zstd"
)

// CustomCodec is how a codec that is none of the standard ones is decoded. Signature and arity are
// checked, with those of the rest of the graph, before any codec of a chunk runs.
type CustomCodec struct {
	Name string // for errors
	In   []Type // types of the streams it takes
	Vars []Type // types that further, variable inputs may have; nil if it has none
	Out  []Type // types of the streams it regenerates, at least one
	// Decode makes every one of the regenerated streams with Call.Make. It may be called from many
	// goroutines at once, each with a Call of its own. An error without a kind becomes Corrupt.
	Decode func(*Call) error
}

// Stream is an input of a custom codec. Its memory must not be written to or kept.
type Stream struct {
	Type  Type
	Width int      // bytes an element: 1 for Serial, 0 for String
	Count int      // elements; for String the number of strings
	Data  []byte   // numbers are little-endian, the first at an address that is a multiple of Width
	Lens  []uint32 // lengths of the strings; nil for other types
}

// Call is one run of a custom codec: its inputs, its header, and memory for what it makes. It is
// valid until Decode returns.
type Call struct{ c call }

// Version returns the format version of the frame.
func (c *Call) Version() int { return c.c.version }

// Header returns the codec's private header, which must not be written to.
func (c *Call) Header() []byte { return c.c.header }

// Inputs returns how many streams the codec takes here, fixed and variable ones.
func (c *Call) Inputs() int { return len(c.c.in) }

// In returns input i, fixed inputs first.
func (c *Call) In(i int) Stream {
	s := c.c.in[i]
	return Stream{s.typ, s.width, s.count, s.data, s.lens}
}

// Make returns memory for regenerated stream i, which is Serial, Struct or Numeric: count elements
// of width bytes, contents arbitrary, numbers aligned. It fails with kind Corrupt where the type
// has no such width and with kind Limit where the memory would pass what the frame may take; a
// codec need not check count before. Each stream is made once.
func (c *Call) Make(i, width, count int) ([]byte, error) {
	switch s := c.c.out[i]; {
	case s.made():
		return nil, c.Corrupt("stream %d is made twice", i)
	case s.typ == String:
		return nil, fault.New(fault.Unsupported, "", fault.NoOffset, "strings made by a custom codec")
	}
	return c.c.make(i, width, count)
}

// Scratch returns n bytes, 8-aligned, that live until the next call of Scratch or Zstd. Contents
// are arbitrary.
func (c *Call) Scratch(n int) ([]byte, error) { return c.c.scratch(n) }

// Zstd fills dst from src, one zstd frame (RFC 8878) without its magic number. src is not part of
// Scratch; dst may be.
func (c *Call) Zstd(dst, src []byte) error { return c.c.d.unzstd(dst[:len(dst):len(dst)], src) }

// Corrupt makes the error of a codec that meets what its format rules out.
func (c *Call) Corrupt(format string, args ...any) error { return c.c.fault(format, args...) }

// made reports whether a regenerated stream has been given its elements.
func (s *stream) made() bool { return s.data != nil || s.buf != nil }

// customCodecs turns a registry into codecs as the decoder sees them.
func customCodecs(in map[uint32]CustomCodec) map[uint32]*codec {
	if len(in) == 0 {
		return nil
	}
	out := make(map[uint32]*codec, len(in))
	for id, c := range in {
		if len(c.Out) == 0 || c.Decode == nil {
			continue // it can decode nothing, and is refused as unknown
		}
		out[id] = &codec{name: c.Name, in: c.In, vars: c.Vars, out: c.Out, decode: func(k *call) error { return k.custom(c.Decode) }}
	}
	return out
}

// custom runs a custom codec and checks that it made what it declared.
func (c *call) custom(decode func(*Call) error) error {
	// The Call lives in the decoder: handed to a function value it would be allocated.
	p := &c.d.custom
	p.c = *c
	err := decode(p)
	p.c = call{}
	switch {
	case err != nil && fault.KindOf(err) == 0:
		return fault.Wrap(fault.Corrupt, "", fault.NoOffset, err)
	case err != nil:
		return err
	}
	for i, s := range c.out {
		if !s.made() {
			return c.fault("stream %d is not made", i)
		}
	}
	return nil
}

// unzstd decompresses one zstd frame that stands without its magic number. The capacity of dst may
// be written to.
func (d *Decoder) unzstd(dst, src []byte) error {
	d.framed = append(append(d.framed[:0], zstdMagic...), src...)
	if d.zstd == nil {
		d.zstd = zstd.New()
	}
	if cap(dst)-len(dst) >= zstd.Spare {
		return d.zstd.DecompressSpare(dst, d.framed)
	}
	return d.zstd.Decompress(dst, d.framed)
}
