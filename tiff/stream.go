package tiff

import (
	"bufio"
	"errors"
	"io"

	"github.com/klauspost/compress/zlib"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/zstd"
)

// Stream implements chunk.StreamDecompressor.
func (zstdDecoder) Stream(src *bufio.Reader, maxWindow int) (chunk.Stream, error) {
	stream, err := zstd.NewStream(src, maxWindow)
	if err != nil {
		// A plain nil: stream is nil, too, but as a Stream it would differ from nil.
		return nil, err
	}
	return stream, nil
}

// Stream implements chunk.StreamDecompressor.
func (*deflateDecoder) Stream(src *bufio.Reader, _ int) (chunk.Stream, error) {
	reader, err := zlib.NewReader(src)
	if err != nil {
		return nil, badDeflate("%v", err)
	}
	return &deflateStream{reader}, nil
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
		return fault.New(fault.Corrupt, "packbits", "ends early, %d bytes missing", missing)
	}
	for len(p) > 0 {
		switch {
		case s.copy > 0:
			size := min(s.copy, len(p))
			if _, err := io.ReadFull(s.src, p[:size]); err != nil {
				return short(len(p))
			}
			s.copy -= size
			p = p[size:]
			continue
		case s.same > 0:
			size := min(s.same, len(p))
			for i := range size {
				p[i] = s.b
			}
			s.same -= size
			p = p[size:]
			continue
		}
		control, err := s.src.ReadByte()
		if err != nil {
			return short(len(p))
		}
		switch run := int(int8(control)); {
		case run >= 0:
			s.copy = run + 1
		case run != -128:
			if s.b, err = s.src.ReadByte(); err != nil {
				return short(len(p))
			}
			s.same = 1 - run
		}
	}
	return nil
}

// End implements chunk.Stream. Bytes after the content are ignored.
func (*packBitsStream) End() error { return nil }

// Close implements chunk.Stream.
func (*packBitsStream) Close() {}
