package shards

import (
	"compress/bzip2"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

// Unpack returns a local folder for shards that are decompressed, which has to outlive the container. It is called when
// the first is found.
type Unpack func() (folder string, err error)

// unpackTo decompresses the shards of an index that exist in compressed form only. It returns the paths of the
// decompressed files by shard number.
//
// Shards are decompressed one after the other, in pieces; decompressed whole, each would take 64 MiB of memory.
func (x *index) unpackTo(ctx context.Context, o source.Opener, dir string, join func(dir, name string) string,
	to Unpack) (map[int]string, error) {
	paths := map[int]string{}
	folder := ""
	for i, indexShard := range x.Shards {
		if indexShard.Zip == nil {
			continue
		}
		r, err := o.Open(ctx, join(dir, indexShard.Raw.Name))
		if err == nil {
			if err := r.Close(); err != nil {
				return nil, err
			}
			continue
		}
		if fault.KindOf(err) != fault.NotFound {
			return nil, err
		}
		if folder == "" {
			if folder, err = to(); err != nil {
				return nil, err
			}
			if folder, err = os.MkdirTemp(folder, "mds"); err != nil {
				return nil, err
			}
		}
		paths[i] = filepath.Join(folder, fmt.Sprintf("shard.%05d.mds", i))
		name := join(dir, indexShard.Zip.Name)
		if err := indexShard.unpack(ctx, o, name, paths[i]); err != nil {
			return nil, fault.WithFile(err, name)
		}
	}
	return paths, nil
}

// unpack decompresses a shard into a new file.
func (s *indexShard) unpack(ctx context.Context, o source.Opener, name, path string) (err error) {
	reader, err := o.Open(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return s.decompress(ctx, file, name, reader)
}

// decompress writes the bytes of a compressed shard: no more than the index says, and an error if they are fewer.
func (s *indexShard) decompress(ctx context.Context, to io.Writer, name string, r source.Reader) error {
	switch {
	case r.Size() != s.Zip.Bytes:
		return fault.New(fault.Corrupt, "shard", fault.NoOffset, "%d bytes, and %d by %s", r.Size(), s.Zip.Bytes,
			IndexName)
	case s.Raw.Bytes < 0 || s.Raw.Bytes > math.MaxUint32:
		return fault.New(fault.Corrupt, "shard", fault.NoOffset, "%d bytes by %s: offsets in it have 32 bits",
			s.Raw.Bytes, IndexName)
	}
	window := newWindow(ctx, name, r)
	window.size = hashBytes
	src, done, err := s.decoder(window)
	if err != nil {
		return err
	}
	defer done()
	n, err := io.Copy(to, io.LimitReader(src, s.Raw.Bytes))
	if err == nil && n == s.Raw.Bytes {
		// The end of the frame has its checksum, and there is nothing behind it.
		var extra [1]byte
		if n, rerr := io.ReadFull(src, extra[:]); n > 0 {
			return fault.New(fault.Corrupt, "shard", fault.NoOffset, "over %d bytes when decompressed, as %s says",
				s.Raw.Bytes, IndexName)
		} else if !errors.Is(rerr, io.EOF) {
			err = rerr
		}
	}
	switch {
	case window.err != nil: // of reading, not of the bytes
		return window.err
	case err != nil && isFile(err):
		return err
	case errors.Is(err, zstd.ErrWindowSizeExceeded):
		return fault.Wrap(fault.Limit, "compressed shard", fault.NoOffset, err)
	case err != nil:
		return fault.Wrap(fault.Corrupt, "compressed shard", fault.NoOffset, err)
	case n < s.Raw.Bytes:
		return fault.New(fault.Corrupt, "shard", fault.NoOffset, "%d bytes when decompressed, and %d by %s", n,
			s.Raw.Bytes, IndexName)
	}
	return nil
}

// isFile reports whether an error is one of writing a file.
func isFile(err error) bool {
	var e *os.PathError
	return errors.As(err, &e)
}

// A zstd decoder takes the memory of the window that a frame claims. 128 MiB is the window of the highest level, 22,
// and 8 MiB is the least that a decoder must allow. In between, the size of the file bounds it: a block of 4 bytes
// decodes to at most 128 KiB, so content is at most 2^15 times as long as the file.
const (
	leastWindow = 8 << 20
	mostWindow  = 128 << 20
	mostRatio   = 15 // of two
)

// decoder returns the decompressed bytes of a shard, and what ends the use of them.
func (s *indexShard) decoder(r io.Reader) (io.Reader, func(), error) {
	switch name, _, _ := strings.Cut(s.Compression, ":"); name {
	case "zstd":
		window := min(max(leastWindow, uint64(s.Zip.Bytes)<<mostRatio), mostWindow)
		decoder, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(window),
			zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, nil, err
		}
		return decoder, decoder.Close, nil
	case "gz":
		reader, err := gzip.NewReader(r)
		if err != nil {
			return nil, nil, fault.Wrap(fault.Corrupt, "compressed shard", fault.NoOffset, err)
		}
		return reader, func() { _ = reader.Close() }, nil // only checks the bytes that were read
	case "bz2":
		return bzip2.NewReader(r), func() {}, nil
	}
	return nil, nil, fault.New(fault.Unsupported, "shard", fault.NoOffset,
		"its compression is %.40q: zstd, gz and bz2 are decompressed", s.Compression)
}
