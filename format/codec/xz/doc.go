// Package xz decodes the xz streams of TIFF chunks (Compression 34925, LZMA), as libtiff writes them: blocks of the
// filters delta and LZMA2.
//
// github.com/ulikunitz/xz decodes LZMA2. Frame, delta filter and checks are read here.
//
// Streams are not trusted: no size that one states sizes an allocation. Checks (CRC32, CRC64, SHA-256) are verified if
// the stream ends with the samples. Other filters are Unsupported. The index behind the blocks is ignored.
package xz
