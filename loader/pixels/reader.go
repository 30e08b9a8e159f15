package pixels

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/rumi"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tiff"
)

// MaxRun bounds a run of chunks that is read at once, in bytes, so that a worker's memory does not follow the
// window. Reads are joined over gaps that are cheaper to read than another call; how large those are the source
// says.
const MaxRun = 4 << 20

// Codecs returns the decompressors of all formats that the loader reads.
func Codecs() chunk.Codecs {
	c := tiff.Codecs()
	maps.Copy(c, rumi.Codecs())
	return c
}

// Reader reads windows of assets for one worker. It keeps its memory between calls.
type Reader struct {
	opener   source.Opener
	maxChunk int
	large    *resources.LargeChunks
	Decoder  *chunk.Decoder
	Clock    *resources.Clock // nil: nobody asks
	plan     chunk.RunPlan
	fresh    freshness
	turns    resources.Turns
	Stored   []byte // bytes of a run
	Samples  []byte // one decoded chunk
	Resample Resampler
	Share    Shared // of the asset that is read
	wants    []want
	boxes    []chunk.Box // of an array, that are read next
	planned  []int       // chunks, for wants
	arrays   []openArray // the last used in front
}

func NewReader(o resources.Options) *Reader {
	return &Reader{opener: o.Opener, maxChunk: o.MaxChunkBytes, large: o.Large, turns: o.Turns, Decoder: chunk.NewDecoder(Codecs())}
}

// SetClock sets the clock that is told what the reader does.
func (r *Reader) SetClock(c *resources.Clock) {
	if r.Clock = c; c != nil {
		r.Decoder.Decompressed = func() { c.Lap(resources.StageDecode) }
	}
}

// idleReaders are assetReaders of reads that are over: a program that reads file after file needs not
// make their tables and memory again each time. The garbage collector takes what stays idle.
var idleReaders = sync.Pool{New: func() any { return &Reader{Decoder: chunk.NewDecoder(Codecs())} }}

// BorrowReader returns a Reader that is given back once it is not used any more.
func BorrowReader(o resources.Options) *Reader {
	r := idleReaders.Get().(*Reader)
	r.opener, r.maxChunk, r.large, r.turns = o.Opener, o.MaxChunkBytes, o.Large, o.Turns
	return r
}

func (r *Reader) GiveBack() {
	r.opener, r.large, r.turns, r.fresh, r.Share, r.arrays = nil, nil, nil, freshness{}, Shared{}, nil
	r.Clock, r.Decoder.Decompressed = nil, nil
	idleReaders.Put(r)
}

// Sink takes decoded chunks.
type Sink interface {
	// put gets the samples of chunk i; they are valid until it returns, and only in the rows that lie
	// in the box that is read, or above it.
	Put(x *chunk.Index, i int, samples []byte)
}

// Read decodes the chunks of an asset that meet box and hold one of bands (nil: those of the box),
// and hands each to the sink; then those of its mask that meet box, if it has one and masked is not
// nil. Errors name the asset's file.
func (r *Reader) Read(ctx context.Context, a catalog.Asset, box chunk.Box, bands []int, to, masked Sink) error {
	err := r.readAsset(ctx, a, box, bands, to, masked)
	if err != nil {
		return a.Fault(err)
	}
	return nil
}

func (r *Reader) readAsset(ctx context.Context, a catalog.Asset, box chunk.Box, bands []int, to, masked Sink) error {
	if a.Index.Blocks != nil {
		r.Share.Key.Mask = false
		return r.chunks(ctx, nil, a.Index, box, bands, to)
	}
	f, err := r.open(ctx, &a)
	if err != nil {
		return err
	}
	defer f.Close()
	r.Share.Key.Mask = false
	if err := r.chunks(ctx, f, a.Index, box, bands, to); err != nil || masked == nil || a.Index.Mask == nil {
		return err
	}
	box, bands = MaskBands(a.Index.Mask, box, bands)
	r.Share.Key.Mask = true
	return InMask(r.chunks(ctx, f, a.Index.Mask, box, bands, masked))
}

// MaskBands returns the box and the bands of a mask that are read with those of its image: its only band, or the same.
func MaskBands(mask *chunk.Index, box chunk.Box, bands []int) (chunk.Box, []int) {
	if mask.Bands == 1 {
		box.B0, box.B1 = 0, 1
		return box, nil
	}
	return box, bands
}

// open opens the file of an asset, which must be the one that its index is of.
func (r *Reader) open(ctx context.Context, a *catalog.Asset) (source.Reader, error) {
	if a.Bytes != nil {
		return a.Reader(), nil
	}
	f, err := source.OpenKnown(ctx, r.opener, a.URI, a.Known())
	if err != nil {
		return nil, err
	}
	if err := r.fresh.check(ctx, a, f, r.maxChunk); err != nil {
		_ = f.Close() // it was only opened
		return nil, err
	}
	return f, nil
}

// InMask says of a fault that it is one of an asset's mask.
func InMask(err error) error {
	if fault.KindOf(err) == 0 {
		return err
	}
	return fault.Wrap(0, "mask", fault.NoOffset, err)
}

// chunks is read for one index of a file that is open, or of an array, which is no file.
func (r *Reader) chunks(ctx context.Context, f source.Reader, x *chunk.Index, box chunk.Box, bands []int, to Sink) error {
	if !x.ChunkFits(r.maxChunk) {
		return x.OverLimit(r.maxChunk)
	}
	shared := r.Share.Tiles != nil
	if resources.IsLarge(x) {
		done, err := r.large.Take(ctx, x)
		if err != nil {
			return err
		}
		defer func() {
			r.Samples, r.Stored = nil, nil
			done()
		}()
		shared = false // others that decode are not waited for
	}
	if n := x.MaxStoredBytes() + chunk.Spare; cap(r.Samples) < n {
		r.Samples = cast.Aligned(n)
	}
	if x.Blocks != nil {
		r.plan.Reset(x, box, bands, 0, 0)
		return r.blocks(ctx, x, box, to)
	}
	r.plan.Reset(x, box, bands, source.Gap(f), MaxRun)
	if shared {
		err := r.fromTiles(ctx, f, x, box, to)
		if err != nil && fault.KindOf(err) == 0 {
			return err
		}
		// Which of several chunks fails first depends on who decodes which, and a chunk is decoded whole for others of
		// which this window needs the upper rows only. So where one fails, the window is read again by itself: then the
		// outcome is the same for any number of workers.
		if err == nil {
			r.plan.Runs = r.plan.Runs[:0]
		}
	}
	for _, run := range r.plan.Runs {
		if err := r.run(ctx, f, x, run, box.Y1, to); err != nil {
			return err
		}
	}
	for _, i := range r.plan.Sparse {
		if err := r.chunk(nil, x, i, box.Y1, to); err != nil {
			return err
		}
	}
	return nil
}

// run reads and decodes the chunks of a run, up to row y1 of the image.
func (r *Reader) run(ctx context.Context, f source.Reader, x *chunk.Index, run chunk.Run, y1 int, to Sink) error {
	if err := r.fetch(ctx, f, run); err != nil {
		return err
	}
	defer r.turns.Take()()
	r.Clock.Lap(resources.StageOther)
	for _, i := range run.Chunks {
		p := x.Place(i)
		if err := r.chunk(r.Stored[p.Off-run.Off:][:p.Len], x, i, y1, to); err != nil {
			return err
		}
	}
	return nil
}

// fetch reads the bytes of a run to stored.
func (r *Reader) fetch(ctx context.Context, f source.Reader, run chunk.Run) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	// The length comes from the file: it must be there before memory is taken for it.
	switch {
	case run.Off < 0 || run.Len < 0 || run.Off > f.Size() || run.Len > f.Size()-run.Off:
		return fault.New(fault.Corrupt, partOf(run), run.Off, "%d bytes reach past the file's %d", run.Len, f.Size())
	case run.Len > int64(max(r.maxChunk, MaxRun)):
		return fault.New(fault.Limit, partOf(run), run.Off, "%d stored bytes, over max_chunk, which is %d", run.Len, r.maxChunk)
	}
	r.Stored = slices.Grow(r.Stored[:0], int(run.Len))[:run.Len]
	r.Clock.Lap(resources.StageOther)
	err := f.ReadAt(ctx, r.Stored, run.Off)
	r.Clock.Lap(resources.StageRead)
	return err
}

// chunk decodes the rows of a chunk that lie above row y1 of the image: a window that ends inside of the
// chunk needs no more.
func (r *Reader) chunk(stored []byte, x *chunk.Index, i, y1 int, to Sink) error {
	samples := r.Samples[:x.StoredBytes(i)]
	if err := r.decode(samples, stored, x, i, y1); err != nil {
		return err
	}
	to.Put(x, i, samples)
	r.Clock.Lap(resources.StageScatter)
	return nil
}

func (r *Reader) decode(samples, stored []byte, x *chunk.Index, i, y1 int) error {
	box := x.Box(i)
	if err := r.Decoder.DecodeRows(samples, stored, x, i, min(y1, box.Y1)-box.Y0); err != nil {
		return fault.AtOffset(err, x.Ranges[i].Off)
	}
	r.Clock.Lap(resources.StagePredictor)
	r.Clock.Decoded(len(samples))
	return nil
}

func partOf(run chunk.Run) string {
	if len(run.Chunks) == 1 {
		return "chunk " + strconv.Itoa(run.Chunks[0])
	}
	return "chunks " + strconv.Itoa(run.Chunks[0]) + " and following"
}
