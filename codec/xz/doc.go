// Package xz decodes the xz streams of TIFF chunks (Compression 34925, LZMA), as libtiff writes them: blocks of the
// filters delta and LZMA2.
//
// LZMA2 is decoded straight into the destination, which is the dictionary too: github.com/ulikunitz/xz, with which
// tests compare, takes three times as long, and the memory of the dictionary that a stream states.
//
// Streams are not trusted. Checks (CRC32, CRC64, SHA-256) are verified if the stream ends with the samples. Other
// filters are Unsupported. The index behind the blocks is ignored.
package xz
