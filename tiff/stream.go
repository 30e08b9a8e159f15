package tiff

import (
	"bufio"
	"errors"
	"io"

	"github.com/klauspost/compress/zlib"

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
	r, err := zlib.NewReader(src)
	if err != nil {
		return nil, badDeflate("%v", err)
	}
	return &deflateStream{r}, nil
}

// deflateStream is the chunk.Stream of a zlib stream.
type deflateStream struct{ r io.ReadCloser }

// Fill implements chunk.Stream.
func (d *deflateStream) Fill(p []byte) error {
	if _, err := io.ReadFull(d.r, p); err != nil {
		return badDeflate("%v", err)
	}
	return nil
}

// End implements chunk.Stream. It reads what the stream holds beyond the content, for the checksum covers it, and
// damage can lengthen a stream. It gives up after zstd.MaxSurplus bytes.
func (d *deflateStream) End() error {
	if _, err := io.CopyN(io.Discard, d.r, zstd.MaxSurplus); err != nil && !errors.Is(err, io.EOF) {
		return badDeflate("%v", err)
	}
	return nil
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
