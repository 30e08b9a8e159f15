package pixels

import (
	"context"
	"slices"

	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
)

// maxArrays is how many arrays a worker keeps open readers of. A reader holds the last tile that it
// decoded, so a worker holds up to four tiles beside its own buffers (see Options.MaxChunkBytes).
const maxArrays = 4

// arrayReader is the open reader of an array.
type arrayReader struct {
	array  chunk.BlockArray
	reader chunk.BlockReader
}

// reader returns this worker's reader of an array. A fifth array evicts the one that was used longest ago.
func (r *Reader) reader(a chunk.BlockArray) chunk.BlockReader {
	place := slices.IndexFunc(r.arrays, func(v arrayReader) bool { return v.array == a })
	if place < 0 {
		opened := arrayReader{a, r.openArray(a)}
		r.arrays = slices.Insert(r.arrays[:min(len(r.arrays), maxArrays-1)], 0, opened)
		return opened.reader
	}
	found := r.arrays[place]
	copy(r.arrays[1:], r.arrays[:place])
	r.arrays[0] = found
	return found.reader
}

func (r *Reader) openArray(a chunk.BlockArray) chunk.BlockReader {
	if r.dry != nil {
		return r.dry.openDry(a)
	}
	reader := a.Open()
	if t, ok := reader.(chunk.TurnTaker); ok {
		t.SetTurn(r.turn)
	}
	if c, ok := reader.(catalog.Composer); ok {
		c.SetSources(r.source)
	}
	return reader
}

// source is the catalog.SourceReader of the reader's virtual rasters.
func (r *Reader) source(ctx context.Context, a catalog.Asset, bands []int, box chunk.Box) ([]byte, []byte, error) {
	if r.below == nil {
		r.below = idleReaders.Get().(*Reader)
		r.below.opener, r.below.maxChunk, r.below.large = r.opener, r.maxChunk, r.large
		r.below.Slot, r.below.waits, r.below.disk = r.Slot, r.waits, r.disk
		r.below.SetClock(r.Clock)
	}
	d, window := a.Index.DType, shuffle.Box{Y: box.Y0, X: box.X0, H: box.Y1 - box.Y0, W: box.X1 - box.X0}
	stored := &Converters{Base: einops.Convert{From: d, To: d}, Nodata: true}
	err := r.below.Planes(ctx, a, bands, window, stored, d.Size())
	return r.below.Resample.In, r.below.Resample.InValid, err
}

// turn waits for a turn to decode, and measures the stages around it. Readers of arrays call it between
// reading and decoding, because they do both themselves, inside ReadBox.
func (r *Reader) turn() (done func()) {
	r.Clock.Lap(resources.StageRead)
	end := r.decoding()
	r.Clock.Lap(resources.StageTurn)
	return func() {
		r.Clock.Lap(resources.StageDecode)
		end()
	}
}

// blocks reads the chunks of an index with Blocks, after chunks has made the plan.
func (r *Reader) blocks(ctx context.Context, x *chunk.Index, box chunk.Box, to Sink) error {
	reader := r.reader(x.Blocks.Array)
	if r.Share.Tiles != nil && r.Share.Order == 0 { // chunks of arrays are not announced
		if err := r.sharedBlocks(ctx, reader, x, to); err == nil || fault.KindOf(err) == 0 {
			return err
		}
		// A fault is looked for again without sharing, so that the error does not depend on the
		// number of workers (see chunks).
	}
	r.boxes = r.boxes[:0]
	for _, i := range r.plan.Blocks {
		r.boxes = append(r.boxes, rowsIn(x.Box(i), box))
	}
	if err := r.ahead(ctx, reader, x); err != nil {
		return err
	}
	for _, i := range r.plan.Blocks {
		if err := r.block(ctx, reader, x, i, box, to); err != nil {
			return err
		}
	}
	return nil
}

// ahead announces the boxes of r.boxes to the array's reader, so that it can join their reads. Only the
// array knows which of its tiles lie side by side in a file.
func (r *Reader) ahead(ctx context.Context, from chunk.BlockReader, x *chunk.Index) error {
	prefetcher, ok := from.(chunk.Prefetcher)
	if !ok {
		return nil
	}
	return prefetcher.Ahead(ctx, x.Blocks.Image, r.boxes)
}

// block reads chunk i, or only its rows inside box (see rowsIn), and puts it into the sink.
func (r *Reader) block(
	ctx context.Context, from chunk.BlockReader, x *chunk.Index, i int, box chunk.Box, to Sink,
) error {
	samples, part := r.samples(x.StoredBytes(i)), x.Box(i)
	dst := samples
	if cut := rowsIn(part, box); cut != part {
		// The rows go where the whole chunk would have them, because sinks use the chunk's strides.
		line := (part.X1 - part.X0) * x.DType.Size()
		if r.dry == nil {
			dst = samples[(cut.Y0-part.Y0)*line : (cut.Y1-part.Y0)*line]
		}
		part = cut
	}
	if err := r.readBox(ctx, from, dst, x, i, part); err != nil {
		return err
	}
	r.Clock.Decoded(len(samples))
	to.Put(x, i, samples)
	r.Clock.Lap(resources.StageScatter)
	return nil
}

// rowsIn returns the box that is read for the chunk at part if a window needs box: only the rows of
// part inside box, all columns. A chunk of several bands is read as a whole.
func rowsIn(part, box chunk.Box) chunk.Box {
	// With more bands, such rows would not be contiguous in memory.
	if part.B1-part.B0 == 1 {
		part.Y0, part.Y1 = max(part.Y0, box.Y0), min(part.Y1, box.Y1)
	}
	return part
}

// readBox fills dst with the samples of box b of chunk i. Time that is neither reading nor decoding, such as
// copying samples from tiles, counts as decoding.
func (r *Reader) readBox(ctx context.Context, from chunk.BlockReader, dst []byte, x *chunk.Index, i int,
	b chunk.Box) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if r.dry != nil {
		r.dry.decoded(x, i, chunk.Range{}, 0)
	}
	r.Clock.Lap(resources.StageOther)
	err := from.ReadBox(ctx, dst, x.Blocks.Image, b)
	r.Clock.Lap(resources.StageDecode)
	return err
}

// sharedBlocks does what fromTiles does, for an index with Blocks: first the chunks that this reader
// decodes, then those that others decode.
func (r *Reader) sharedBlocks(ctx context.Context, from chunk.BlockReader, x *chunk.Index, to Sink) error {
	wants, done := r.want(x, r.plan.Blocks, x.Height)
	defer done()
	r.boxes = r.boxes[:0]
	for _, want := range wants {
		// Ahead must get exactly the boxes that ReadBox is called for. Chunks of others are not among
		// them, although one may be read here later, if the other reader fails.
		if want.decode || want.t == nil {
			r.boxes = append(r.boxes, x.Box(want.i))
		}
	}
	if err := r.ahead(ctx, from, x); err != nil {
		return err
	}
	for k := range wants {
		want := &wants[k]
		switch {
		case want.t == nil:
			if err := r.block(ctx, from, x, want.i, x.Box(want.i), to); err != nil {
				return err
			}
		case want.decode:
			if err := r.readBox(ctx, from, want.t.Samples, x, want.i, x.Box(want.i)); err != nil {
				return err
			}
			r.Share.Tiles.Finish(want.t, false)
			want.open = false
			r.Clock.Decoded(len(want.t.Samples))
			to.Put(x, want.i, want.t.Samples)
		}
	}
	return r.awaitTiles(ctx, wants, x, to, func(i int) error { return r.block(ctx, from, x, i, x.Box(i), to) })
}
