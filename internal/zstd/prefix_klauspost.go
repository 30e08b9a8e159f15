//go:build !datadog

package zstd

import (
	"io"

	"github.com/klauspost/compress/zstd"
)

// streamWindow is the largest window that a stream may claim: its memory is taken before content is
// there. Frames of chunks that claim more are decoded whole.
const streamWindow = 8 << 20

// prefix fills dst[:n] with the start of the content, block by block, or reports false.
func (d *Decoder) prefix(dst, src []byte, n int) bool {
	if d.stream == nil {
		s, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(streamWindow))
		if err != nil {
			panic("zstd: " + err.Error()) // only options can fail, and these are constants
		}
		d.stream = s
	}
	d.in.b = src
	defer func() { d.in.b = nil }()
	if d.stream.Reset(&d.in) != nil {
		return false
	}
	_, err := io.ReadFull(d.stream, dst[:n])
	return err == nil
}

// feed reads bytes. It has no method Bytes: what has one is taken for a buffer and decoded whole.
type feed struct{ b []byte }

// Read implements io.Reader.
func (f *feed) Read(p []byte) (int, error) {
	if len(f.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, f.b)
	f.b = f.b[n:]
	return n, nil
}
