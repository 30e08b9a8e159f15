package pixels

import (
	"context"

	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
)

func (r *Reader) openArray(a chunk.BlockArray) chunk.BlockReader {
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
		r.below.environment = r.environment
		r.below.SetClock(r.Clock)
	}
	r.below.Client = r.Client
	r.below.Share = Shared{} // a pool has room for the chunks of the virtual raster, which it shares
	if r.Share.Tiles != nil && r.Share.Order > 0 {
		r.below.Share = Shared{Tiles: r.Share.Tiles, Key: TileKey{Source: a.Source}, Order: r.Share.Order}
	}
	d, window := a.Index.DType, shuffle.Box{Y: box.Y0, X: box.X0, H: box.Y1 - box.Y0, W: box.X1 - box.X0}
	stored := &Converters{Base: einops.Convert{From: d, To: d}, Nodata: true}
	err := r.below.Planes(ctx, a, bands, window, stored, d.Size())
	return r.below.Resample.In, r.below.Resample.InValid, err
}

// turn begins decoding, and measures the stages around it. Readers of arrays call it between reading and decoding,
// because they do both themselves, inside ReadBox.
func (r *Reader) turn() (done func()) {
	r.Clock.Lap(resources.StageRead)
	r.begin()
	return func() {
		r.Clock.Lap(resources.StageDecode)
		r.end()
	}
}

// blocks reads chunks of the array. It first announces all boxes to the array's reader, which can join their reads:
// only the array knows which of its tiles lie side by side in a file.
func (w *walk) blocks(ctx context.Context, wants []neededChunk) error {
	boxes := w.boxesOf(wants)
	if prefetcher, ok := w.array.(chunk.Prefetcher); ok {
		if err := prefetcher.Ahead(ctx, w.x.Blocks.Image, boxes); err != nil {
			return err
		}
	}
	for i := range wants {
		if err := w.block(ctx, &wants[i], boxes[i]); err != nil {
			return err
		}
	}
	return nil
}

// block reads box part of a chunk of the array, and puts the chunk into the sink. Time that is neither reading nor
// decoding, such as copying samples from tiles, counts as decoding.
func (w *walk) block(ctx context.Context, c *neededChunk, part chunk.Box) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	x, samples := w.x, w.memory(c)
	dst := samples
	if whole := x.Box(c.i); part != whole {
		// The rows go where the whole chunk would have them, because sinks use the chunk's strides.
		line := (part.X1 - part.X0) * x.DType.Size()
		dst = samples[(part.Y0-whole.Y0)*line : (part.Y1-whole.Y0)*line]
	}
	w.Clock.Lap(resources.StageOther)
	err := w.array.ReadBox(ctx, dst, x.Blocks.Image, part)
	w.Clock.Lap(resources.StageDecode)
	if err != nil {
		return err
	}
	w.finish(c, samples)
	return nil
}
