package loader

import (
	"context"
	"slices"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
)

// maxArrays is how many arrays a worker keeps readers of: each holds the last tile that it decoded.
const maxArrays = 4

// openArray is a worker's reader of an array.
type openArray struct {
	array  chunk.BlockArray
	reader chunk.BlockReader
}

// reader returns this worker's reader of an array.
func (r *assetReader) reader(a chunk.BlockArray) chunk.BlockReader {
	for k := range r.arrays {
		if found := r.arrays[k]; found.array == a {
			copy(r.arrays[1:], r.arrays[:k])
			r.arrays[0] = found
			return found.reader
		}
	}
	if len(r.arrays) == maxArrays {
		r.arrays = r.arrays[:maxArrays-1]
	}
	from := a.Open()
	if t, ok := from.(chunk.TurnTaker); ok {
		t.SetTurn(r.turn)
	}
	r.arrays = slices.Insert(r.arrays, 0, openArray{a, from})
	return from
}

// turn is what readers of arrays call before they decode.
func (r *assetReader) turn() (done func()) {
	r.clock.Lap(StageRead)
	over := r.turns.take()
	r.clock.Lap(StageWait)
	return func() {
		r.clock.Lap(StageDecode)
		over()
	}
}

// blocks is chunks for an index with Blocks, once the plan is made.
func (r *assetReader) blocks(ctx context.Context, x *chunk.Index, box chunk.Box, to sink) error {
	from := r.reader(x.Blocks.Array)
	if r.share.tiles != nil {
		if err := r.sharedBlocks(ctx, from, x, to); err == nil || fault.KindOf(err) == 0 {
			return err // else as chunks does
		}
	}
	r.boxes = r.boxes[:0]
	for _, i := range r.plan.Blocks {
		r.boxes = append(r.boxes, rowsIn(x.Box(i), box))
	}
	if err := r.ahead(ctx, from, x); err != nil {
		return err
	}
	for _, i := range r.plan.Blocks {
		if err := r.block(ctx, from, x, i, box, to); err != nil {
			return err
		}
	}
	return nil
}

// ahead says which boxes are read next.
func (r *assetReader) ahead(ctx context.Context, from chunk.BlockReader, x *chunk.Index) error {
	f, ok := from.(chunk.Prefetcher)
	if !ok {
		return nil
	}
	return f.Ahead(ctx, x.Blocks.Image, r.boxes)
}

// block reads chunk i, or the rows of it that box has where those follow each other in memory.
func (r *assetReader) block(ctx context.Context, from chunk.BlockReader, x *chunk.Index, i int, box chunk.Box, to sink) error {
	samples, part := r.samples[:x.StoredBytes(i)], x.Box(i)
	dst := samples
	if cut := rowsIn(part, box); cut != part {
		line := (part.X1 - part.X0) * x.DType.Size()
		dst = samples[(cut.Y0-part.Y0)*line : (cut.Y1-part.Y0)*line]
		part = cut
	}
	if err := r.readBox(ctx, from, dst, x, part); err != nil {
		return err
	}
	r.clock.decoded(len(samples))
	to.put(x, i, samples)
	r.clock.Lap(StageScatter)
	return nil
}

// rowsIn returns what is read of a chunk for a box: its rows that the box has, where those follow each other in memory.
func rowsIn(part, box chunk.Box) chunk.Box {
	if part.B1-part.B0 == 1 {
		part.Y0, part.Y1 = max(part.Y0, box.Y0), min(part.Y1, box.Y1)
	}
	return part
}

// readBox reads a box. What is neither reading nor decoding tiles, such as gathering samples from them, is put down to
// decoding too.
func (r *assetReader) readBox(ctx context.Context, from chunk.BlockReader, dst []byte, x *chunk.Index, b chunk.Box) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r.clock.Lap(StageOther)
	err := from.ReadBox(ctx, dst, x.Blocks.Image, b)
	r.clock.Lap(StageDecode)
	return err
}

// sharedBlocks is fromTiles for an index with Blocks.
func (r *assetReader) sharedBlocks(ctx context.Context, from chunk.BlockReader, x *chunk.Index, to sink) error {
	wants, done := r.want(x, r.plan.Blocks)
	defer done()
	r.boxes = r.boxes[:0]
	for _, w := range wants {
		if w.mine || w.t == nil {
			r.boxes = append(r.boxes, x.Box(w.i))
		}
	}
	if err := r.ahead(ctx, from, x); err != nil {
		return err
	}
	for k := range wants {
		w := &wants[k]
		switch {
		case w.t == nil:
			if err := r.block(ctx, from, x, w.i, x.Box(w.i), to); err != nil {
				return err
			}
		case w.mine:
			if err := r.readBox(ctx, from, w.t.samples, x, x.Box(w.i)); err != nil {
				return err
			}
			r.share.tiles.finish(w.t, false)
			w.open = false
			r.clock.decoded(len(w.t.samples))
			to.put(x, w.i, w.t.samples)
		}
	}
	return r.others(ctx, wants, x, to, func(i int) error { return r.block(ctx, from, x, i, x.Box(i), to) })
}
