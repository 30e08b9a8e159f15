package zstd

import (
	"sync"

	"github.com/klauspost/compress/zstd"
)

const (
	// deepRatio is the ratio by which the fast encoder must shrink content before the deep search for
	// matches is tried. Sensor samples and their differences shrink less, because their low bits are
	// noise: klauspost's best level takes 17 to 35 times as long as its default there, for 0 to 2.6 %
	// fewer bytes. Labels shrink more: 20 to 34 % fewer bytes for 6 to 16 times the time.
	// docs/measurements.md has the measurements.
	deepRatio = 3
	// deepAlways is the first level at which the deep search is tried on all content: the "ultra"
	// levels of libzstd.
	deepAlways = 20
	// singleSegment is the largest content that is written as a single segment, which saves a byte and
	// records the size of small content too. It is bounded, because a reader of streams (libtiff) needs
	// memory of the size of a segment, and refuses 128 MiB.
	singleSegment = 8 << 20
	// smallWindow is the window, in bytes, of encoders for content up to its size, which holds most tiles. An
	// encoder allocates history of twice the window of its level, 16 MiB, for content above 128 KiB, and for any
	// content if it is a deep one: 52 MiB for the first tile instead of 36. The frames are the same, because no match
	// is farther away than either window.
	smallWindow = 1 << 20
)

// encoders keeps encoders by level: with a small window, for other single segments, and for larger
// content. They are kept, because the tables of one take up to 34 MiB.
var encoders [3][zstd.SpeedBestCompression + 1]sync.Pool

// Append appends a frame of src, without a checksum, to dst. level is a level of libzstd, 1 to 22. The
// encoder, klauspost/compress with all build tags, has four levels: from 6 on, Append also tries the
// corresponding deep one where it pays, and keeps the smaller frame. The frame depends on src and level
// only.
func Append(dst, src []byte, level int) []byte {
	deep := zstd.EncoderLevelFromZstd(level)
	out := encode(dst, src, min(deep, zstd.SpeedDefault))
	size := len(out) - len(dst)
	if deep <= zstd.SpeedDefault || level < deepAlways && size > len(src)/deepRatio {
		return out
	}
	both := encode(out, src, deep)
	if second := both[len(out):]; len(second) < size {
		return append(both[:len(dst)], second...)
	}
	return both[:len(out)]
}

func encode(dst, src []byte, level zstd.EncoderLevel) []byte {
	small, single := len(src) <= smallWindow, len(src) <= singleSegment
	kept := &encoders[2][level]
	switch {
	case small:
		kept = &encoders[0][level]
	case single:
		kept = &encoders[1][level]
	}
	encoder, ok := kept.Get().(*zstd.Encoder)
	if !ok {
		encoder = newEncoder(level, small, single)
	}
	dst = encoder.EncodeAll(src, dst)
	kept.Put(encoder)
	return dst
}

func newEncoder(level zstd.EncoderLevel, small, single bool) *zstd.Encoder {
	options := []zstd.EOption{zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false),
		zstd.WithZeroFrames(true), zstd.WithSingleSegment(single),
		// Differences of samples have few matches. The fast levels would store such content as it is, though its
		// bytes are far from equally frequent.
		zstd.WithAllLitEntropyCompression(true)}
	if small {
		options = append(options, zstd.WithWindowSize(smallWindow), zstd.WithLowerEncoderMem(true))
	}
	encoder, err := zstd.NewWriter(nil, options...)
	if err != nil {
		panic("zstd: " + err.Error()) // only options can fail, and these are sound
	}
	return encoder
}
