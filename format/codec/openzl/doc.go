// Package openzl reads OpenZL frames (format versions 8 to 27) in pure Go, and writes the graphs
// that rasters are stored with.
//
// A frame holds one or more typed outputs. Since version 21 it is cut into chunks. Each chunk carries
// a graph: the stored streams, and nodes. A node is a codec that turns its input streams into one
// or more regenerated streams. The format is defined by src/openzl/common/wire_format.h and the decoders
// below src/openzl/codecs in the OpenZL sources (github.com/facebook/openzl), whose names this package
// uses. Version 27 has the layout of version 26 and one more codec, pivco_huffman.
//
// The graph of a chunk is checked as a whole before its first node runs: all codecs are known, arity and
// types fit, there is no cycle, and every stream is made once. Checksums (XXH3) of frame header, chunk and
// content are verified. Package internal/codecs has one file per standard codec, with a binding that checks
// and allocates; its kernel in internal/kernel is a plain loop. internal/codecs/registry.go lists all
// codecs with the versions they occur in. Custom codecs are passed as a value, Options.Custom; package
// geozl has those for rasters.
//
// An Encoder writes frames of version 24 with one of a few graphs, chosen by name or by trial.
//
// Refused with kind Unsupported: custom codecs beside Options.Custom, dictionaries, outputs of
// unknown size, frames before version 8 and after 27, and rolz with other parameters than the
// original encoder's.
package openzl
