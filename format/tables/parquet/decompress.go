package parquet

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/snappy"
	"github.com/pierrec/lz4/v4"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/zstd"
)

// Codecs. The numbers are Parquet's.
const (
	codecNone   = 0
	codecSnappy = 1
	codecGzip   = 2
	codecBrotli = 4
	codecZstd   = 6
	codecLZ4Raw = 7
)

var zstdPool = sync.Pool{New: func() any { return zstd.New() }}

// decompress returns the n bytes that b holds compressed. n was checked (pageHeader.check), so it may size an
// allocation. Streams that give fewer or more bytes are corrupt.
func decompress(codec int32, b []byte, n int) ([]byte, error) {
	var out []byte
	var err error
	switch codec {
	case codecNone:
		if len(b) != n {
			return nil, corrupt("%d bytes, %d announced", len(b), n)
		}
		// b may be part of a column chunk, which a kept page must not keep in memory.
		return bytes.Clone(b), nil
	case codecSnappy:
		var size int
		if size, err = snappy.DecodedLen(b); err == nil {
			if size != n {
				return nil, corrupt("%d bytes, %d announced", size, n)
			}
			out, err = snappy.Decode(make([]byte, n), b)
		}
	case codecZstd:
		if n == 0 && len(b) == 0 {
			return nil, nil
		}
		out = make([]byte, n, n+zstd.Spare)
		decoder := zstdPool.Get().(*zstd.Decoder)
		err = decoder.Decompress(out, b)
		zstdPool.Put(decoder)
	case codecLZ4Raw:
		out = make([]byte, n)
		var size int
		if size, err = lz4.UncompressBlock(b, out); err == nil {
			out = out[:size]
		}
	case codecGzip:
		var reader *gzip.Reader
		if reader, err = gzip.NewReader(bytes.NewReader(b)); err == nil {
			out, err = readAll(reader, n)
		}
	case codecBrotli:
		out, err = readAll(brotli.NewReader(bytes.NewReader(b)), n)
	default:
		return nil, fault.At(fault.Unsupported, "page", 0, "compression %d", codec)
	}
	if err != nil {
		return nil, fault.WrapAt(fault.Corrupt, "page", 0, fmt.Errorf("decompressing: %w", err))
	}
	if len(out) != n {
		return nil, corrupt("%d bytes, %d announced", len(out), n)
	}
	return out, nil
}

// readAll reads at most n+1 bytes: one too many shows that the stream is longer than n.
func readAll(r io.Reader, n int) ([]byte, error) {
	var buf bytes.Buffer
	_, err := io.Copy(&buf, io.LimitReader(r, int64(n)+1))
	return buf.Bytes(), err
}
