package arrays

import (
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"compress/zlib"
	"encoding/binary"
	"io"
	"slices"

	frames "github.com/klauspost/compress/zstd"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/expand"
	"github.com/chaski-eo/chaski/internal/zstd"
)

// chunkDecoder undoes the codecs of chunks. It keeps its memory between chunks and is not safe for concurrent use.
type chunkDecoder struct {
	expand expand.Decoder
	turns  [2][]byte // the output of a step, used alternately
	blosc  [2][]byte // the planes of a block, and its bytes before bits are put together
}

// chunk fills dst from the stored bytes of a chunk. The capacity of dst past its length may be overwritten.
func (d *chunkDecoder) chunk(dst, src []byte, steps []decodeStep) error {
	cur, turn := src, 0
	for i := range steps {
		step := &steps[i]
		if step.sum != nil { // checks its bytes where they are
			body, err := checked(cur, step)
			if err != nil {
				return fault.WithPart(err, "codec "+step.name, fault.NoOffset)
			}
			cur = body
			continue
		}
		if stored := step.stored(); stored >= 0 && stored != len(cur) {
			return badSize(step.name, len(cur), stored)
		}
		if step.size < 0 {
			opened, err := d.opened(step, cur, 2*len(dst)+64<<10)
			if err != nil {
				return fault.WithPart(err, "codec "+step.name, fault.NoOffset)
			}
			cur = opened
			continue
		}
		out := dst
		if i < len(steps)-1 {
			// The two buffers alternate, so the output is never the one that cur is in.
			next := &d.turns[turn]
			*next = slices.Grow((*next)[:0], step.size+zstd.Spare)
			out, turn = (*next)[:step.size], 1-turn
		}
		if len(out) != step.size {
			return badSize(step.name, step.size, len(out))
		}
		if err := step.undo(d, out, cur, step); err != nil {
			return fault.WithPart(err, "codec "+step.name, fault.NoOffset)
		}
		cur = out
	}
	if len(cur) != len(dst) {
		return broken("bytes", "%d bytes, the chunk has %d", len(cur), len(dst))
	}
	if len(dst) > 0 && &cur[0] != &dst[0] {
		copy(dst, cur)
	}
	return nil
}

// opened undoes a compressor whose output, of at most so many bytes, is of no known size.
func (d *chunkDecoder) opened(s *decodeStep, src []byte, most int) ([]byte, error) {
	if s.sum != nil {
		return checked(src, s)
	}
	var r io.Reader
	var err error
	switch s.kindName {
	case "gzip":
		r, err = gzip.NewReader(bytes.NewReader(src))
	case "zlib":
		r, err = zlib.NewReader(bytes.NewReader(src))
	case "bz2":
		r = bzip2.NewReader(bytes.NewReader(src))
	case "zstd":
		var opened *frames.Decoder
		opened, err = frames.NewReader(bytes.NewReader(src), frames.WithDecoderConcurrency(1),
			frames.WithDecoderMaxMemory(uint64(most)), frames.WithDecoderLowmem(true))
		if err == nil {
			defer opened.Close()
			r = opened
		}
	case "blosc", "lz4":
		size := uint32(0)
		offset := 0
		if s.kindName == "blosc" { // which has it behind 4 bytes
			offset = 4
		}
		if len(src) >= offset+4 {
			size = binary.LittleEndian.Uint32(src[offset:])
		}
		if int64(size) > int64(min(most, 255*len(src)+64)) {
			return nil, broken("", "%d bytes of %d stored ones", size, len(src))
		}
		out := make([]byte, size, int(size)+64)
		return out, s.undo(d, out, src, s)
	default:
		return nil, Unsupported("codec %q of values of no known size", s.name)
	}
	if err != nil {
		return nil, broken("", "%v", err)
	}
	out, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	if err != nil {
		return nil, broken("", "%v", err)
	}
	if len(out) > most {
		return nil, broken("", "more than %d bytes", most)
	}
	return out, nil
}

func broken(part, format string, args ...any) error {
	return fault.New(fault.Corrupt, part, format, args...)
}

func badSize(part string, got, want int) error {
	return broken("codec "+part, "%d bytes, %d needed", got, want)
}
