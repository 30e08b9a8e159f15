//go:build !datadog

package zstd

import (
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/chaski-eo/chaski/internal/zstd/whole"
)

// Name is the decoder's name, for reports of measurements: whole frames are decoded by package whole where it is fast.
var Name = func() string {
	if whole.Fast() {
		return "chaski"
	}
	return "klauspost"
}()

// InC says that frames are decompressed in C, which the scheduler of Go cannot see: see package procs.
const InC = false

// Exact says that Decompress is as fast without room after dst.
func Exact() bool { return whole.Fast() }

// Decoder decompresses frames, one after the other. It keeps its tables between calls.
type Decoder struct {
	own    whole.Decoder
	d      *zstd.Decoder
	stream *zstd.Decoder // made when first used
	in     feed
}

// maxWindow is the largest window that libzstd accepts (3.75 GiB: windowLog 31 with the largest mantissa),
// so both decoders accept the same frames. It costs nothing, since dst is the window.
const maxWindow = 1<<31 + 7<<28

// New returns a decoder for one worker.
func New() *Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true),
		zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		panic("zstd: " + err.Error()) // only options can fail, and these are constants
	}
	return &Decoder{d: d}
}

// into fills dst, and what follows it if there is room.
func (d *Decoder) into(dst, src []byte) (int, error) {
	room := min(cap(dst), len(dst)+Spare)
	if whole.Fast() && d.own.Decode(dst[:room], len(dst), src) {
		return len(dst), nil
	}
	out, err := d.d.DecodeAll(src, dst[:0:room])
	return len(out), err
}

// prefix fills dst[:n] with the start of the content, block by block, or reports false.
func (d *Decoder) prefix(dst, src []byte, n int) bool {
	if whole.Fast() && d.own.DecodePrefix(slices.Clip(dst), len(dst), n, src) {
		return true
	}
	if d.stream == nil {
		d.stream = newStream(streamWindow)
	}
	d.in.b = src
	defer func() { d.in.b = nil }()
	if d.stream.Reset(&d.in) != nil {
		return false
	}
	_, err := io.ReadFull(d.stream, dst[:n])
	return err == nil
}
