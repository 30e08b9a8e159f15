package tiff

import (
	"bufio"
	"errors"
	"hash"
	"hash/adler32"
	"io"

	"github.com/klauspost/compress/flate"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/zstd"
)

// Stream implements chunk.StreamDecompressor.
func (zstdDecoder) Stream(src *bufio.Reader, maxWindow int) (chunk.Stream, error) {
	stream, err := zstd.NewStream(src, maxWindow)
	if err != nil {
		return nil, err // not stream, which would be a Stream that is not nil
	}
	return stream, nil
}

// Stream implements chunk.StreamDecompressor.
func (*deflateDecoder) Stream(src *bufio.Reader, _ int) (chunk.Stream, error) {
	var head [2]byte
	if _, err := io.ReadFull(src, head[:]); err != nil && !errors.Is(err, io.EOF) &&
		!errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, badDeflate("%v", err)
	}
	if !zlibHeader(head[:]) {
		return nil, errZlibHeader()
	}
	return &deflateStream{src: src, r: flate.NewReader(src), sum: adler32.New()}, nil
}

// deflateStream is the chunk.Stream of a zlib stream.
type deflateStream struct {
	src *bufio.Reader
	r   io.ReadCloser
	sum hash.Hash32 // of the content so far
}

// Fill implements chunk.Stream.
func (d *deflateStream) Fill(p []byte) error {
	if _, err := io.ReadFull(d.r, p); err != nil {
		return badDeflate("%v", err)
	}
	_, _ = d.sum.Write(p) // a hash never fails
	return nil
}

// End implements chunk.Stream. It reads what the stream holds beyond the content, for the checksum covers it, and
// damage can lengthen a stream. It gives up after zstd.MaxSurplus bytes.
func (d *deflateStream) End() error {
	switch _, err := io.CopyN(d.sum, d.r, zstd.MaxSurplus); {
	case err == nil:
		return nil
	case !errors.Is(err, io.EOF):
		return badDeflate("%v", err)
	}
	// The checksum is next, because flate never reads ahead in an io.ByteReader.
	var behind [4]byte
	n, err := io.ReadFull(d.src, behind[:])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return badDeflate("%v", err)
	}
	return checkDeflate(behind[:n], d.sum.Sum32())
}

// Close implements chunk.Stream.
func (d *deflateStream) Close() { _ = d.r.Close() } // it only reports an error that Fill has returned

// Stream implements chunk.StreamDecompressor.
func (packBitsDecoder) Stream(src *bufio.Reader, _ int) (chunk.Stream, error) {
	return &packBitsStream{src: src}, nil
}

// packBitsStream is the chunk.Stream of PackBits.
type packBitsStream struct {
	src  *bufio.Reader
	copy int  // bytes left of the run that is copied
	same int  // bytes left of the run of one byte
	b    byte // that byte
}

// Fill implements chunk.Stream.
func (s *packBitsStream) Fill(p []byte) error {
	short := func(missing int) error {
		return fault.New(fault.Corrupt, "packbits", fault.NoOffset, "ends early, %d bytes missing", missing)
	}
	for len(p) > 0 {
		switch {
		case s.copy > 0:
			n := min(s.copy, len(p))
			if _, err := io.ReadFull(s.src, p[:n]); err != nil {
				return short(len(p))
			}
			s.copy -= n
			p = p[n:]
			continue
		case s.same > 0:
			n := min(s.same, len(p))
			for i := range n {
				p[i] = s.b
			}
			s.same -= n
			p = p[n:]
			continue
		}
		b, err := s.src.ReadByte()
		if err != nil {
			return short(len(p))
		}
		switch n := int(int8(b)); {
		case n >= 0:
			s.copy = n + 1
		case n != -128:
			if s.b, err = s.src.ReadByte(); err != nil {
				return short(len(p))
			}
			s.same = 1 - n
		}
	}
	return nil
}

// End implements chunk.Stream. Bytes after the content are ignored.
func (*packBitsStream) End() error { return nil }

// Close implements chunk.Stream.
func (*packBitsStream) Close() {}
