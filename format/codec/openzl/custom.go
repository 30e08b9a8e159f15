package openzl

import "github.com/chaski-eo/chaski/format/codec/openzl/internal/codecs"

// CustomCodec decodes a codec that is not one of the standard ones, as package geozl does. Its signature and arity are
// checked, with the rest of the graph, before any codec of a chunk runs. Decode makes every stream of Out, may be
// called by many goroutines, each with a Call of its own, and returns errors with a kind.
type CustomCodec = codecs.Codec

// Call is one run of a codec: its inputs, its header, and memory for its results.
type Call = codecs.Call

// Stream is an input of a codec, which must not write to its memory, or keep it.
type Stream = codecs.Stream
