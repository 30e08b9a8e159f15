package openzl

import (
	"github.com/chaski-eo/chaski/codec/openzl/internal/codecs"
	"github.com/chaski-eo/chaski/fault"
)

// CustomCodec decodes a codec that is not one of the standard ones. Its signature and arity are checked,
// with the rest of the graph, before any codec of a chunk runs.
type CustomCodec struct {
	Name string // for errors
	In   []Type // types of the streams it takes
	Vars []Type // types that further, variable inputs may have; nil if it has none
	Out  []Type // types of the streams it regenerates, at least one
	// Decode makes every regenerated stream with Call.Make. It may be called by many goroutines, each
	// with a Call of its own. An error without a kind becomes Corrupt.
	Decode func(*Call) error
}

// Stream is an input of a custom codec. The codec must not write to its memory, or keep it.
type Stream struct {
	Type  Type
	Width int      // bytes an element: 1 for Serial, 0 for String
	Count int      // elements; for String the number of strings
	Data  []byte   // numbers are little-endian, the first at an address that is a multiple of Width
	Lens  []uint32 // lengths of the strings; nil for other types
}

// Call is one run of a custom codec: its inputs, its header, and memory for its results. It is valid until
// Decode returns.
type Call struct{ c codecs.Call }

// Version returns the format version of the frame.
func (c *Call) Version() int { return c.c.Version }

// Header returns the codec's private header, which must not be written to.
func (c *Call) Header() []byte { return c.c.Header }

// Inputs returns the number of inputs of this call, fixed and variable ones.
func (c *Call) Inputs() int { return len(c.c.In) }

// In returns input i, fixed inputs first.
func (c *Call) In(i int) Stream {
	s := c.c.In[i]
	return Stream{s.Type, s.Width, s.Count, s.Data, s.Lens}
}

// Make returns memory for regenerated stream i, which is Serial, Struct or Numeric: count elements of width
// bytes, with arbitrary contents, aligned for numbers. It fails with kind Corrupt if the type does not have
// that width, and with kind Limit if the frame may not take that much memory, so that a codec need not
// check count itself. Each stream is made once.
func (c *Call) Make(i, width, count int) ([]byte, error) {
	switch s := c.c.Out[i]; {
	case s.Made():
		return nil, c.Corrupt("stream %d is made twice", i)
	case s.Type == String:
		return nil, fault.New(fault.Unsupported, "", fault.NoOffset, "strings made by a custom codec")
	}
	return c.c.Make(i, width, count)
}

// Scratch returns n bytes, 8-aligned, that live until the next call of Scratch or Zstd. Contents
// are arbitrary.
func (c *Call) Scratch(n int) ([]byte, error) { return c.c.Scratch(n) }

// Zstd fills dst from src, one zstd frame (RFC 8878) without its magic number. src is not part of
// Scratch; dst may be.
func (c *Call) Zstd(dst, src []byte) error { return c.c.Unzstd(dst[:len(dst):len(dst)], src) }

// Pivco fills dst from src, blocks of PivCo Huffman (codec pivco_huffman) of block bytes by the code of
// weights. dst is not empty; it may be part of Scratch, src may not.
func (c *Call) Pivco(dst, weights, src []byte, block int) error {
	return c.c.Pivco(dst[:len(dst):len(dst)], weights, src, block)
}

// Corrupt returns the error of a codec that meets what its format rules out.
func (c *Call) Corrupt(format string, args ...any) error { return c.c.Corrupt(format, args...) }

// customCodecs turns a registry into codecs as the decoder sees them. Every run of one uses call.
func customCodecs(in map[uint32]CustomCodec, call *Call) map[uint32]*codecs.Codec {
	if len(in) == 0 {
		return nil
	}
	out := make(map[uint32]*codecs.Codec, len(in))
	for id, c := range in {
		if len(c.Out) == 0 || c.Decode == nil {
			continue // it cannot decode, so that frames with it are refused as for an unknown codec
		}
		out[id] = &codecs.Codec{Name: c.Name, In: c.In, Vars: c.Vars, Out: c.Out, Decode: func(k *codecs.Call) error {
			return runCustom(c.Decode, call, k)
		}}
	}
	return out
}

// runCustom runs a custom codec and checks that it filled the outputs that it declared. call lives in the
// decoder, because a Call made here would be allocated at every run.
func runCustom(decode func(*Call) error, call *Call, k *codecs.Call) error {
	call.c = *k
	err := decode(call)
	call.c = codecs.Call{}
	switch {
	case err != nil && fault.KindOf(err) == 0:
		return fault.Wrap(fault.Corrupt, "", fault.NoOffset, err)
	case err != nil:
		return err
	}
	for i, s := range k.Out {
		if !s.Made() {
			return k.Corrupt("stream %d is not made", i)
		}
	}
	return nil
}
