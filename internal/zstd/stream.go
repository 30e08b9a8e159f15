package zstd

import (
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/chaski-eo/chaski/fault"
)

// Stream decodes frames from front to back in parts. It takes the window that a frame claims and about 1.5
// MB of memory.
type Stream struct {
	d         *zstd.Decoder
	maxWindow int
}

// NewStream begins to decode the frames that src yields. It refuses frames that claim a window of more than
// maxWindow bytes, or streamWindow if that is more, since the decoder allocates the window before any content
// arrives.
func NewStream(src io.Reader, maxWindow int) (*Stream, error) {
	maxWindow = max(maxWindow, streamWindow)
	s := &Stream{d: newStream(maxWindow), maxWindow: maxWindow}
	if err := s.d.Reset(noBytes{src}); err != nil {
		s.d.Close()
		return nil, s.fault(err)
	}
	return s, nil
}

// noBytes hides all methods but Read, because klauspost takes a reader with a method Bytes for a buffer.
type noBytes struct{ io.Reader }

// Fill fills p with the next bytes of the content.
func (s *Stream) Fill(p []byte) error {
	if _, err := io.ReadFull(s.d, p); err != nil {
		return s.fault(err)
	}
	return nil
}

// End checks the frame that the content ends in, and further ones, as DecompressSurplus does.
func (s *Stream) End() error {
	if err := surplus(s.d); err != nil {
		return s.fault(err)
	}
	return nil
}

// Close frees the decoder's memory. The stream must not be used afterwards.
func (s *Stream) Close() { s.d.Close() }

func (s *Stream) fault(err error) error {
	if errors.Is(err, zstd.ErrWindowSizeExceeded) || errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		return fault.New(fault.Limit, "zstd", "a frame claims a window of more than %d bytes, so that it can only be "+
			"decoded whole: max_chunk must be at least the size of the chunk (--max-chunk)", s.maxWindow)
	}
	return &fault.Error{Kind: fault.Corrupt, Part: "zstd", Off: fault.NoOffset, Msg: err.Error(), Err: err}
}
