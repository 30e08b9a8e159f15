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
	// docs/performance.md has the measurements.
	deepRatio = 3
	// deepAlways is the first level at which the deep search is tried on all content: the "ultra"
	// levels of libzstd.
	deepAlways = 20
	// singleSegment is the largest content that is written as a single segment, which saves a byte and
	// records the size of small content too. It is bounded, because a reader of streams (libtiff) needs
	// memory of the size of a segment, and refuses 128 MiB.
	singleSegment = 8 << 20
)

// encoders keeps encoders by level, those of single segments first. They are kept, because the tables of
// one take up to tens of MB.
var encoders [2][zstd.SpeedBestCompression + 1]sync.Pool

// Append appends a frame of src, without a checksum, to dst. level is a level of libzstd, 1 to 22. The
// encoder, klauspost/compress with all build tags, has four levels: from 6 on, Append also tries the
// corresponding deep one where it pays, and keeps the smaller frame. The frame depends on src and level
// only.
func Append(dst, src []byte, level int) []byte {
	deep := zstd.EncoderLevelFromZstd(level)
	out := encode(dst, src, min(deep, zstd.SpeedDefault))
	n := len(out) - len(dst)
	if deep <= zstd.SpeedDefault || level < deepAlways && n > len(src)/deepRatio {
		return out
	}
	both := encode(out, src, deep)
	if second := both[len(out):]; len(second) < n {
		return append(both[:len(dst)], second...)
	}
	return both[:len(out)]
}

func encode(dst, src []byte, level zstd.EncoderLevel) []byte {
	single := len(src) <= singleSegment
	pool := &encoders[0][level]
	if !single {
		pool = &encoders[1][level]
	}
	e, ok := pool.Get().(*zstd.Encoder)
	if !ok {
		var err error
		e, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(1),
			zstd.WithEncoderCRC(false), zstd.WithZeroFrames(true),
			zstd.WithSingleSegment(single),
			// Differences of samples have few matches. The fast levels would store such content as it is, though its
			// bytes are far from equally frequent.
			zstd.WithAllLitEntropyCompression(true))
		if err != nil {
			panic("zstd: " + err.Error()) // only options can fail, and these are sound
		}
	}
	dst = e.EncodeAll(src, dst)
	pool.Put(e)
	return dst
}
