package pixels

import (
	"context"
	"slices"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/resources"
)

// MaxArrays is how many arrays a worker keeps readers of: each holds the last tile that it decoded.
const MaxArrays = 4

// openArray is a worker's reader of an array.
type openArray struct {
	array  chunk.BlockArray
	reader chunk.BlockReader
}

// reader returns this worker's reader of an array.
func (r *Reader) reader(a chunk.BlockArray) chunk.BlockReader {
	for k := range r.arrays {
		if found := r.arrays[k]; found.array == a {
			copy(r.arrays[1:], r.arrays[:k])
			r.arrays[0] = found
			return found.reader
		}
	}
	if len(r.arrays) == MaxArrays {
		r.arrays = r.arrays[:MaxArrays-1]
	}
	from := a.Open()
	if t, ok := from.(chunk.TurnTaker); ok {
		t.SetTurn(r.turn)
	}
	r.arrays = slices.Insert(r.arrays, 0, openArray{a, from})
	return from
}

// turn is what readers of arrays call before they decode.
func (r *Reader) turn() (done func()) {
	r.Clock.Lap(resources.StageRead)
	over := r.turns.Take()
	r.Clock.Lap(resources.StageWait)
	return func() {
		r.Clock.Lap(resources.StageDecode)
		over()
	}
}

// blocks is chunks for an index with Blocks, once the plan is made.
func (r *Reader) blocks(ctx context.Context, x *chunk.Index, box chunk.Box, to Sink) error {
	from := r.reader(x.Blocks.Array)
	if r.Share.Tiles != nil {
		if err := r.sharedBlocks(ctx, from, x, to); err == nil || fault.KindOf(err) == 0 {
			return err // else as chunks does
		}
	}
	r.boxes = r.boxes[:0]
	for _, i := range r.plan.Blocks {
		r.boxes = append(r.boxes, RowsIn(x.Box(i), box))
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
func (r *Reader) ahead(ctx context.Context, from chunk.BlockReader, x *chunk.Index) error {
	f, ok := from.(chunk.Prefetcher)
	if !ok {
		return nil
	}
	return f.Ahead(ctx, x.Blocks.Image, r.boxes)
}

// block reads chunk i, or the rows of it that box has where those follow each other in memory.
func (r *Reader) block(ctx context.Context, from chunk.BlockReader, x *chunk.Index, i int, box chunk.Box, to Sink) error {
	samples, part := r.Samples[:x.StoredBytes(i)], x.Box(i)
	dst := samples
	if cut := RowsIn(part, box); cut != part {
		line := (part.X1 - part.X0) * x.DType.Size()
		dst = samples[(cut.Y0-part.Y0)*line : (cut.Y1-part.Y0)*line]
		part = cut
	}
	if err := r.readBox(ctx, from, dst, x, part); err != nil {
		return err
	}
	r.Clock.Decoded(len(samples))
	to.Put(x, i, samples)
	r.Clock.Lap(resources.StageScatter)
	return nil
}

// RowsIn returns what is read of a chunk for a box: its rows that the box has, where those follow each other in memory.
func RowsIn(part, box chunk.Box) chunk.Box {
	if part.B1-part.B0 == 1 {
		part.Y0, part.Y1 = max(part.Y0, box.Y0), min(part.Y1, box.Y1)
	}
	return part
}

// readBox reads a box. What is neither reading nor decoding tiles, such as gathering samples from them, is put down to
// decoding too.
func (r *Reader) readBox(ctx context.Context, from chunk.BlockReader, dst []byte, x *chunk.Index, b chunk.Box) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r.Clock.Lap(resources.StageOther)
	err := from.ReadBox(ctx, dst, x.Blocks.Image, b)
	r.Clock.Lap(resources.StageDecode)
	return err
}

// sharedBlocks is fromTiles for an index with Blocks.
func (r *Reader) sharedBlocks(ctx context.Context, from chunk.BlockReader, x *chunk.Index, to Sink) error {
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
			if err := r.readBox(ctx, from, w.t.Samples, x, x.Box(w.i)); err != nil {
				return err
			}
			r.Share.Tiles.Finish(w.t, false)
			w.open = false
			r.Clock.Decoded(len(w.t.Samples))
			to.Put(x, w.i, w.t.Samples)
		}
	}
	return r.others(ctx, wants, x, to, func(i int) error { return r.block(ctx, from, x, i, x.Box(i), to) })
}
