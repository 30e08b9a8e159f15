// Package xz decodes the xz streams of TIFF chunks (Compression 34925, LZMA), as libtiff writes them: blocks of the
// filters delta and LZMA2.
//
// github.com/ulikunitz/xz decodes LZMA2. It has no delta filter, which libtiff puts before LZMA2 in every chunk, and
// allocates the dictionary that a stream states, so that blocks and the heads of LZMA2's chunks are read here.
//
// Streams are not trusted. Checks (CRC32, CRC64, SHA-256) are verified if the stream ends with the samples. Other
// filters are Unsupported. The index behind the blocks is ignored.
package xz
