package openzl

import (
	"encoding/binary"
	"math/bits"
	"sync"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/openzl/internal/kernel"
	"github.com/klauspost/compress/zstd"
	"github.com/zeebo/xxh3"
)

// writeVersion is the format version of the frames written here. rumi reads up to 24.
const writeVersion = 24

// Ids of the codecs that are written.
const (
	idDelta       = 1
	idNumToSerial = 10
	idZstd        = 22
)

// DeltaZstd appends to dst a frame of format version 24 that holds samples, little-endian numbers
// of width bytes (1, 2, 4 or 8), as one numeric output: differences of neighbours, compressed with
// zstd. level is a zstd level, 1 to 22, which klauspost/compress maps to its own. The frame
// carries both checksums, as the original library's do by default. The error, of kind
// Unsupported, says that width or the length of samples is none.
func DeltaZstd(dst, samples []byte, width, level int) ([]byte, error) {
	if err := checkSamples(samples, width); err != nil {
		return dst, err
	}
	w := frameWriter{
		size:   len(samples),
		codecs: []writtenCodec{{idZstd, nil}, {idNumToSerial, []byte{byte(bits.Len(uint(width)) - 1)}}, {idDelta, nil}},
	}
	var deltas []byte
	if len(samples) > 0 {
		w.codecs[2].header = samples[:width]
		deltas = make([]byte, len(samples)-width)
		kernel.Differences(deltas, samples, width)
	}
	zl := zstd.EncoderLevelFromZstd(level)
	enc, ok := encoders[zl].Get().(*zstd.Encoder)
	if !ok {
		enc = newZstdEncoder(zl)
	}
	frame := enc.EncodeAll(deltas, nil)
	encoders[zl].Put(enc)
	// The width of the elements, one byte, stands where zstd's magic number of four would.
	w.stream = frame[3:]
	w.stream[0] = 1
	return w.appendTo(dst, samples), nil
}

// Store appends to dst a frame of format version 24 that holds samples as they are, as one numeric
// output. It is otherwise like DeltaZstd.
func Store(dst, samples []byte, width int) ([]byte, error) {
	if err := checkSamples(samples, width); err != nil {
		return dst, err
	}
	w := frameWriter{
		size:   len(samples),
		codecs: []writtenCodec{{idNumToSerial, []byte{byte(bits.Len(uint(width)) - 1)}}},
		stream: samples,
	}
	return w.appendTo(dst, samples), nil
}

func checkSamples(samples []byte, width int) error {
	switch {
	case !numericWidth(width):
		return fault.New(fault.Unsupported, "samples", fault.NoOffset, "numbers of %d bytes", width)
	case len(samples)%width != 0:
		return fault.New(fault.Unsupported, "samples", fault.NoOffset, "%d bytes are no numbers of %d", len(samples), width)
	}
	return nil
}

// encoders keeps encoders by level: making one is dear.
var encoders [zstd.SpeedBestCompression + 1]sync.Pool

// newZstdEncoder returns an encoder whose frames have a content size and, since the frame around
// them has a checksum, none of their own.
func newZstdEncoder(level zstd.EncoderLevel) *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true), zstd.WithZeroFrames(true))
	if err != nil {
		panic("openzl: " + err.Error()) // only options can fail, and these are sound
	}
	return e
}

type writtenCodec struct {
	id     byte
	header []byte
}

// frameWriter writes a frame of one numeric output and one chunk, whose graph is a chain of codecs
// in the order in which they decode.
type frameWriter struct {
	size   int
	codecs []writtenCodec
	stream []byte
}

func (w *frameWriter) appendTo(dst, content []byte) []byte {
	frame := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, magicBase+writeVersion)
	dst = append(dst, 3, 1|2<<4) // both checksums; one output, numeric
	dst = binary.AppendUvarint(dst, uint64(w.size)+1)
	dst = append(dst, byte(xxh3.Hash(dst[frame:])))

	chunk := len(dst)
	n := len(w.codecs)
	dst = binary.AppendUvarint(dst, uint64(n)+1)
	dst = binary.AppendUvarint(dst, 1) // stored streams
	var ids uint32
	var headed byte
	for i, c := range w.codecs {
		ids |= uint32(c.id) << (7 * i)
		if len(c.header) > 0 {
			headed |= 1 << i
		}
	}
	dst = append(dst, 0) // all codecs are standard ones
	for i := range (7*n + 7) / 8 {
		dst = append(dst, byte(ids>>(8*i)))
	}
	dst = append(dst, headed)
	for _, c := range w.codecs {
		if len(c.header) > 0 {
			dst = binary.AppendUvarint(dst, uint64(len(c.header))-1)
		}
	}
	// No variable inputs, one regenerated stream each, and each the next codec's input.
	dst = append(dst, 0, 0, 0)
	dst = binary.AppendUvarint(dst, uint64(len(w.stream)))
	for _, c := range w.codecs {
		dst = append(dst, c.header...)
	}
	dst = append(dst, w.stream...)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(xxh3.Hash(content)))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(xxh3.Hash(dst[chunk:])))
	return append(dst, 0)
}
