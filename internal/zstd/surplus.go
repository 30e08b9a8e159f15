package zstd

import (
	"errors"
	"io"
	"math"

	"github.com/klauspost/compress/zstd"
)

// streamWindow is the largest window that a stream may claim, because the decoder allocates it before any
// content arrives. RFC 8878 recommends 8 MiB as the size that all decoders support. Frames that claim
// more are decoded whole.
const streamWindow = 8 << 20

// newStream returns a decoder of streams, the same for every build tag. maxWindow is a window that
// libzstd accepts, so at most 3.75 GiB.
func newStream(maxWindow int) *zstd.Decoder {
	stream, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(uint64(maxWindow)),
		zstd.WithDecoderMaxMemory(math.MaxInt64)) // the caller bounds the content
	if err != nil {
		panic("zstd: " + err.Error()) // only options can fail, and these are in range
	}
	return stream
}

// DecompressSurplus fills dst from frames that hold more than len(dst) bytes, or that are followed by
// bytes which are not a frame. It serves chunks that Decompress refuses. It reports false if src is
// neither, or damaged; dst may then be overwritten. It takes
// about 1.5 MB of memory, and up to 8 MiB for the window that a frame claims.
func DecompressSurplus(dst, src []byte) bool {
	stream := newStream(streamWindow)
	defer stream.Close()
	if stream.Reset(&feed{src}) != nil {
		return false
	}
	if _, err := io.ReadFull(stream, dst); err != nil {
		return false
	}
	return surplus(stream) == nil
}

// MaxSurplus is how much content beyond the end of a chunk is checked. A last strip that is padded to the height of
// the others has less.
const MaxSurplus = 16 << 20

// surplus reads what frames hold beyond the content of a chunk, for their checksums cover it, and damage can lengthen
// a frame. It ignores bytes that are not a frame.
func surplus(r io.Reader) error {
	_, err := io.CopyN(io.Discard, r, MaxSurplus)
	if errors.Is(err, io.EOF) || errors.Is(err, zstd.ErrMagicMismatch) {
		return nil
	}
	return err
}

// feed reads from b. It must not have a method Bytes: klauspost takes a reader with one for a buffer, and
// decodes it whole.
type feed struct{ b []byte }

// Read implements io.Reader.
func (f *feed) Read(p []byte) (int, error) {
	if len(f.b) == 0 {
		return 0, io.EOF
	}
	copied := copy(p, f.b)
	f.b = f.b[copied:]
	return copied, nil
}
