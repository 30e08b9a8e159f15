package arrays

import (
	"slices"

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

func broken(part, format string, args ...any) error {
	return fault.New(fault.Corrupt, part, format, args...)
}

func badSize(part string, got, want int) error {
	return broken("codec "+part, "%d bytes, %d needed", got, want)
}
