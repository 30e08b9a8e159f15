// Package xz decodes the xz streams of TIFF chunks (Compression 34925, LZMA), as libtiff writes them: blocks of the
// filters delta and LZMA2.
//
// A chunk's samples are the dictionary of the decoder, so that the dictionary size that a stream states costs no
// memory; github.com/ulikunitz/xz has no delta filter, and allocates a dictionary for each stream.
//
// Streams are not trusted. Checks (CRC32, CRC64, SHA-256) are verified if the stream ends with the samples. Other
// filters are Unsupported. The index behind the blocks is ignored.
package xz
