package pixels

import (
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/resources"
)

// stripsBytes bounds strips that are put into the sink as one chunk: a part of a second-level cache.
const stripsBytes = 64 << 10

// strips puts uncompressed strips that follow each other in the file, the first of wants, into the sink as one chunk. A
// strip of one row would cost as much as a chunk of many. stored begins with the first one's bytes. It returns how many
// strips it has put there: 0 if they are not such strips.
func (w *walk) strips(stored []byte, wants []neededChunk) int {
	x, first := w.x, &wants[0]
	groups, size := x.Groups(), int(first.place.Len)
	most := min(stripsBytes/max(size, 1), x.Down())
	if x.Codec != chunk.Raw || most < 2 || x.Across() > 1 || first.t != nil || x.OfArray() {
		return 0
	}
	row := first.i / groups
	count := min(most, x.Down()-row)
	if row%most != 0 || count > len(wants) || count < most && !x.CutEdge || size != x.DecodedBytes(first.i) {
		return 0
	}
	next := first.place.Off
	for k := range wants[:count] {
		c := &wants[k]
		if c.t != nil || c.i != first.i+k*groups || c.place.Off != next {
			return 0
		}
		next += c.place.Len
	}
	if w.joinedOf != x || w.strip.ChunkH != most*x.ChunkH {
		w.joinedOf, w.strip = x, *x
		w.strip.ChunkH, w.strip.Ranges, w.strip.Mask = most*x.ChunkH, nil, nil
	}
	i := row/most*groups + first.i%groups
	samples := w.strip.AsStored(stored[:next-first.place.Off], i)
	if samples == nil {
		return 0
	}
	w.Clock.Decoded(len(samples))
	w.sink.Put(&w.strip, i, samples)
	w.Clock.Lap(resources.StageScatter)
	return count
}
