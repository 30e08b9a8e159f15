// Package openzl reads OpenZL frames (format versions 8 to 27) in pure Go, and writes the graphs
// that rasters are stored with.
//
// A frame holds one or more typed outputs. Since version 21 it is cut into chunks. Each chunk
// carries a graph: nodes, each one a codec that turns its input streams into one or more
// regenerated streams, and the stored streams the graph starts from. The format is that of
// src/openzl/common/wire_format.h and of the decoders below src/openzl/codecs in the OpenZL
// sources (github.com/facebook/openzl), to which the names in this package refer. Version 27 is
// newer than these; its frames have the layout of version 26 and one codec more.
//
// The graph of a chunk is checked as a whole (codecs known, arity, types, no cycle, every stream
// made once) before its first node runs. Checksums (XXH3) of frame header, chunk and content are
// verified. Each standard codec is one file with a binding, which checks and allocates, and a
// kernel in internal/kernel, which is a plain loop; registry.go lists them all, with the versions
// they occur in. Custom codecs are passed as a value, Options.Custom; package geozl has those of
// rasters.
//
// An Encoder writes frames of version 24 with one of a few graphs, chosen by name or by trying.
//
// Not supported, and said so with an error of kind Unsupported: custom codecs that are not in
// Options.Custom, dictionaries, outputs of unknown size, frames before version 8 and after 27, and the
// codecs that registry.go lists without a decoder (rolz, fastlz, pivco_huffman).
package openzl
