package pixels

import (
	"bufio"
	"context"
	"slices"
	"strconv"
	"sync"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/chunk/runs"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/each"
	"github.com/chaski-eo/chaski/internal/turns"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
)

// MaxRun is the largest run in bytes: the chunks that a reader fetches with one read. A run joins
// chunks over gaps of up to source.Gap, because reading these is cheaper than another read.
const MaxRun = 4 << 20 // otherwise a worker's memory would grow with its largest window

// Reader reads windows of assets for one worker. It keeps its buffers between calls, so it is not
// safe for concurrent use.
type Reader struct {
	opener   source.Opener
	maxChunk int
	large    *resources.LargeChunks
	Decoder  *chunk.Decoder
	Clock    *resources.Clock // nil: time is not measured
	plan     runs.Plan
	indexes  freshness
	Slot     *turns.Slot // the turn to use a processor of the goroutine that has the reader; nil: no turns
	waits    bool        // for the bytes of remote files, without its turn
	disk     source.DiskCache
	Stored   []byte        // the bytes of one run, as stored in the file
	Samples  []byte        // one decoded chunk, or a piece of one
	parts    *bufio.Reader // of the stored bytes of a chunk that is decoded in pieces
	Resample Resampler
	colours  []byte // the bands of a window of colours, and their validity
	Share    Shared // where decoded chunks of the current asset are shared
	wants    []want
	boxes    []chunk.Box   // the boxes of an array that are read next
	planned  []int         // the chunks of all runs of the plan
	group    []runs.Run    // the runs of chunks that are not shared yet
	arrays   []arrayReader // of the arrays that were used last, the last used one first
	below    *Reader       // of the sources of virtual rasters; nil before the first one
	dry      *DryReader    // the reader itself, if it is dry; else nil
}

// NewReader returns a reader for one worker of an engine with these options.
func NewReader(o resources.Options) *Reader {
	reader := &Reader{Decoder: chunk.NewDecoder(nil)}
	reader.set(o)
	return reader
}

// set sets the reader to some options.
func (r *Reader) set(o resources.Options) {
	r.opener, r.maxChunk, r.large = o.Opener, o.MaxChunkBytes, o.Large()
	r.Slot, r.waits, r.disk = o.Turns.Slot(nil), o.Waits(), o.Disk
}

// SetClock sets the clock that measures the stages of the reader. nil stops measuring.
func (r *Reader) SetClock(c *resources.Clock) {
	if r.Clock = c; c != nil {
		r.Decoder.Decompressed = func() { c.Lap(resources.StageDecode) }
	}
}

// idleReaders holds readers that no call uses, so that a program that reads file after file does not
// build decoder tables and buffers for each. The garbage collector frees readers that stay idle.
var idleReaders = sync.Pool{New: func() any { return &Reader{Decoder: chunk.NewDecoder(nil)} }}

// BorrowReader returns an idle Reader, or a new one, set to these options. The caller returns it
// with GiveBack.
func BorrowReader(o resources.Options) *Reader {
	reader := idleReaders.Get().(*Reader)
	reader.set(o)
	return reader
}

// GiveBack returns a borrowed reader. The caller must not use it afterwards.
func (r *Reader) GiveBack() {
	// Only buffers and decoder tables stay. An opener, cache or array that an idle reader held would
	// live on after its engine, and the next borrower would trust files that it never checked.
	r.Slot.Rest()
	if r.below != nil {
		r.below.GiveBack()
		r.below = nil
	}
	r.opener, r.large, r.Slot, r.disk, r.indexes, r.Share, r.arrays = nil, nil, nil, nil, freshness{}, Shared{}, nil
	r.Clock, r.Decoder.Decompressed = nil, nil
	idleReaders.Put(r)
}

// Sink receives decoded chunks.
type Sink interface {
	// Put receives the samples of chunk i of x, of shape x.Stored(i) and dtype x.DType. They are valid
	// until Put returns. Pixels past the last one of the box that is read have arbitrary content, because
	// decoding stops there. x is the index that is read or, for chunks that are decoded in pieces, that
	// of its pieces (chunk.Index.InPieces).
	Put(x *chunk.Index, i int, samples []byte)
}

// Read decodes the chunks of asset a that meet box and hold one of bands, and puts each into sink to.
// If bands is nil, the box says which bands. If a has a mask and masked is not nil, Read also puts the
// mask's chunks that meet box into masked, after the chunks of the image there. Errors name the asset's file.
func (r *Reader) Read(ctx context.Context, a catalog.Asset, box chunk.Box, bands []int, to, masked Sink) error {
	err := r.readAsset(ctx, a, box, bands, to, masked)
	if err != nil {
		return a.Fault(err)
	}
	return nil
}

func (r *Reader) readAsset(ctx context.Context, a catalog.Asset, box chunk.Box, bands []int, to, masked Sink) error {
	if a.Parts != nil {
		return fault.New(fault.Unsupported, "asset", fault.NoOffset, "a stack of rasters is not read here")
	}
	var file source.Reader
	if a.Index.Blocks == nil {
		r.Clock.Lap(resources.StageOther)
		opened, err := r.open(ctx, &a)
		r.Clock.Lap(resources.StageRead)
		if err != nil {
			return err
		}
		defer opened.Close()
		file = opened
	}
	r.Share.Key.Mask = false
	mask := a.Index.Masking()
	if mask == a.Index && masked != nil && mask.ChunkB > 1 { // the image's chunks have alpha in them
		to, masked = both{to, masked}, nil
	}
	if err := r.chunks(ctx, file, a.Index, box, bands, to); err != nil || masked == nil || mask == nil {
		return err
	}
	// The mask comes last, because its sink fills masked pixels of the tensor, which the image's chunks
	// would otherwise overwrite.
	box, bands = maskBands(mask, box, bands)
	if mask == a.Index {
		return r.chunks(ctx, file, mask, box, bands, masked)
	}
	r.Share.Key.Mask = true
	if a.MaskFile != nil {
		return a.MaskFile.Fault(r.maskFile(ctx, a.MaskFile, box, bands, masked))
	}
	return InMask(r.chunks(ctx, file, mask, box, bands, masked))
}

// maskFile reads the chunks of a mask that lies beside the image.
func (r *Reader) maskFile(ctx context.Context, a *catalog.Asset, box chunk.Box, bands []int, masked Sink) error {
	file, err := r.open(ctx, a)
	if err != nil {
		return err
	}
	defer file.Close()
	return r.chunks(ctx, file, a.Index, box, bands, masked)
}

// both is a Sink that puts chunks into two.
type both struct{ image, mask Sink }

// Put implements Sink.
func (b both) Put(x *chunk.Index, i int, samples []byte) {
	b.image.Put(x, i, samples)
	b.mask.Put(x, i, samples)
}

// maskBands returns which box and bands of a mask belong to a box and bands of its image. A mask of
// one band, and alpha, holds for all bands of the image; any other mask has the bands of the image.
func maskBands(mask *chunk.Index, box chunk.Box, bands []int) (chunk.Box, []int) {
	if mask.Bands == 1 || mask.Alpha {
		box.B0, box.B1 = mask.Bands-1, mask.Bands
		return box, nil
	}
	return box, bands
}

// open opens the file of an asset and checks that it is still the file that the index describes.
func (r *Reader) open(ctx context.Context, a *catalog.Asset) (source.Reader, error) {
	if a.Bytes != nil || r.dry != nil {
		return a.Reader(), nil
	}
	file, err := source.OpenKnown(ctx, r.opener, a.URI, a.Known())
	if err != nil {
		return nil, err
	}
	if err := r.indexes.check(ctx, a, file, r.maxChunk); err != nil {
		_ = file.Close() // nothing was written, so a failure to close loses nothing
		return nil, err
	}
	return file, nil
}

// InMask adds the part "mask" to a fault, to distinguish a mask's chunk from the image's chunk of the
// same number. It returns other errors, and nil, unchanged.
func InMask(err error) error {
	if fault.KindOf(err) == 0 {
		return err
	}
	return fault.Wrap(0, "mask", fault.NoOffset, err)
}

// chunks reads the chunks of index x from file f. For arrays f is nil, because their readers open
// files themselves.
func (r *Reader) chunks(
	ctx context.Context, f source.Reader, x *chunk.Index, box chunk.Box, bands []int, to Sink,
) error {
	if !x.ChunkFits(r.maxChunk) {
		if pieces := x.InPieces(r.maxChunk); pieces != nil {
			return r.inPieces(ctx, f, x, pieces, box, bands, to)
		}
		return x.OverLimit(r.maxChunk)
	}
	shared := r.Share.Tiles != nil
	if resources.IsLarge(x) {
		r.Slot.Rest() // others may need a turn to free the room
		r.Clock.Lap(resources.StageOther)
		done, err := r.large.Take(ctx, x)
		r.Clock.Lap(resources.StageMemory)
		if err != nil {
			return err
		}
		defer func() {
			// The buffers go before the room does: kept ones would hold memory that is not counted.
			r.Samples, r.Stored = nil, nil
			done()
		}()
		// A shared chunk may be one that another worker decodes. That worker may itself wait for the
		// room that this one holds, so waiting for it would be a deadlock.
		shared = false
	}
	r.room(x)
	if x.Blocks != nil {
		r.plan.Reset(x, box, bands, 0, 0)
		return r.blocks(ctx, x, box, to)
	}
	if r.dry != nil {
		r.dry.compare(x, box, bands)
	}
	r.plan.Reset(x, box, bands, r.gap(f), MaxRun)
	if shared {
		err := r.fromTiles(ctx, f, x, box, to)
		if err != nil && fault.KindOf(err) == 0 {
			return err
		}
		// If a shared chunk is damaged, the reader reads the window again, without sharing. Otherwise
		// the result would depend on the number of workers: which damaged chunk is found first follows
		// from which worker decodes it, and shared chunks are decoded to their last row, where damage
		// may lie below the rows of this window.
		if err == nil {
			r.plan.Runs = r.plan.Runs[:0]
		}
	}
	for runs := r.plan.Runs; len(runs) > 0; {
		n := r.together(f, runs)
		if err := r.runs(ctx, f, x, runs[:n], box, to); err != nil {
			return err
		}
		runs = runs[n:]
	}
	return r.sparse(ctx, x, box, to)
}

// room makes Samples large enough for any chunk of x.
func (r *Reader) room(x *chunk.Index) {
	if n := x.MaxStoredBytes() + chunk.Spare; r.dry == nil && cap(r.Samples) < n {
		r.Samples = cast.Aligned(n)
	}
}

// samples returns n bytes of Samples. A dry reader has none.
func (r *Reader) samples(n int) []byte {
	if r.dry != nil {
		return nil
	}
	return r.Samples[:n]
}

// gap returns the gap, in bytes, over which ranges of a file are read as one.
func (r *Reader) gap(f source.Reader) int64 {
	if r.dry != nil {
		return r.dry.Gap
	}
	return source.Gap(f)
}

// sparse makes the chunks that the file leaves out.
func (r *Reader) sparse(ctx context.Context, x *chunk.Index, box chunk.Box, to Sink) error {
	if len(r.plan.Sparse) == 0 {
		return nil
	}
	defer r.decoding()()
	for _, i := range r.plan.Sparse {
		if err := r.Slot.Tick(ctx); err != nil {
			return err
		}
		if err := r.chunk(nil, x, i, box, to); err != nil {
			return err
		}
	}
	return nil
}

// runsTogether bounds the runs that are requested together.
const runsTogether = 32

// together returns how many of the next runs are read together: of remote files as many as fit into MaxRun, so that
// their answers come in one round trip; else one, and one that the cache on disk has.
func (r *Reader) together(f source.Reader, runs []runs.Run) int {
	n, total := 0, int64(0)
	for r.waits && n < min(len(runs), runsTogether) && runs[n].Len <= MaxRun-total && !r.isNear(f, runs[n]) {
		total += runs[n].Len
		n++
	}
	return max(n, 1)
}

// runs reads runs and decodes of their chunks what box needs.
func (r *Reader) runs(
	ctx context.Context, f source.Reader, x *chunk.Index, runs []runs.Run, box chunk.Box, to Sink,
) error {
	// The turn is taken after the read, so that a reader that waits for bytes keeps no other from decoding. Where the
	// bytes are in the cache on disk, it is taken before: more readers than decode would only fill the processor's
	// caches with bytes that wait.
	near, reading := r.waits && r.isNear(f, runs[0]), ctx
	if near {
		defer r.decoding()()
		reading = turns.With(ctx, r.Slot) // which rests if the range is gone meanwhile
	}
	if err := r.fetch(reading, f, runs...); err != nil {
		return err
	}
	if !near {
		defer r.decoding()()
	}
	begin := int64(0) // of the run in Stored
	for _, run := range runs {
		for _, i := range run.Chunks {
			if err := r.Slot.Tick(ctx); err != nil {
				return err
			}
			if err := r.chunk(r.stored(x.Place(i), run.Off-begin), x, i, box, to); err != nil {
				return err
			}
		}
		begin += run.Len
	}
	return nil
}

// stored returns the bytes of a place in Stored, as if that began at offset off of the file. A dry reader has none.
func (r *Reader) stored(place chunk.Range, off int64) []byte {
	if r.dry != nil {
		return nil
	}
	return r.Stored[place.Off-off:][:place.Len]
}

// decoding waits for a turn to decode. The caller must call over when it has decoded.
func (r *Reader) decoding() (over func()) {
	// Without a context, because the caller looks at its own between two chunks. Turns come soon.
	_ = r.Slot.Tick(context.Background())
	r.Clock.Lap(resources.StageTurn)
	if r.waits {
		return r.Slot.Rest
	}
	return keepTurn
}

// keepTurn ends decoding of local files: the next chunk comes soon.
func keepTurn() {}

// isNear reports whether the cache on disk has a run of a file.
func (r *Reader) isNear(f source.Reader, run runs.Run) bool {
	// A run that is not allowed is not asked for, since the cache would look for a range of any length.
	if r.disk == nil || r.allowed(f, run) != nil {
		return false
	}
	object, start := source.Place(f)
	return r.disk.Has(object, source.Range{Off: start + run.Off, Len: run.Len})
}

// fetch reads the bytes of runs into r.Stored, one behind the other, all at the same time.
func (r *Reader) fetch(ctx context.Context, f source.Reader, runs ...runs.Run) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	total := int64(0)
	for _, run := range runs {
		if err := r.allowed(f, run); err != nil {
			return err
		}
		if total += run.Len; r.dry != nil {
			r.dry.fetched(run)
		}
	}
	if r.dry != nil {
		return nil
	}
	r.Stored = slices.Grow(r.Stored[:0], int(total))[:total]
	r.Clock.Lap(resources.StageOther)
	defer r.Clock.Lap(resources.StageRead)
	if len(runs) == 1 {
		return f.ReadAt(ctx, r.Stored, runs[0].Off)
	}
	return each.Of(ctx, int64(len(runs)), len(runs), func(ctx context.Context, i int64) error {
		begin := int64(0)
		for _, run := range runs[:i] {
			begin += run.Len
		}
		return f.ReadAt(ctx, r.Stored[begin:][:runs[i].Len], runs[i].Off)
	})
}

// ReaderBytes is about what a reader holds besides buffers: the tables of its decoders.
const ReaderBytes = 64 << 10

// HeldBytes returns about how many bytes of memory the reader keeps for its next window. For readers of arrays, virtual
// rasters and pieces it is just a large number.
func (r *Reader) HeldBytes() int64 {
	if len(r.arrays) > 0 || r.below != nil || r.parts != nil {
		return MaxRun
	}
	resampled := 4 * (cap(r.Resample.In) + cap(r.Resample.Out)) // with the validity, and scenes of a mosaic
	return ReaderBytes + int64(cap(r.Stored)+cap(r.Samples)+cap(r.colours)+resampled)
}

// allowed checks a run. Offset and length come from the file's header, which may lie. They are checked before memory is
// allocated, so that a small hostile file cannot claim gigabytes.
func (r *Reader) allowed(f source.Reader, run runs.Run) error {
	if err := present(f, run); err != nil && r.dry == nil { // a dry reader has no file
		return err
	}
	if run.Len > int64(max(r.maxChunk, MaxRun)) {
		return fault.New(fault.Limit, partOf(run), run.Off,
			"%d stored bytes, over max_chunk, which is %d", run.Len, r.maxChunk)
	}
	return nil
}

// present checks that a run lies in file f.
func present(f source.Reader, run runs.Run) error {
	// The comparison subtracts, because run.Off+run.Len could overflow.
	if run.Off < 0 || run.Len < 0 || run.Off > f.Size() || run.Len > f.Size()-run.Off {
		return fault.New(fault.Corrupt, partOf(run), run.Off, "%d bytes reach past the file's %d", run.Len, f.Size())
	}
	return nil
}

// chunk decodes of chunk i what box needs, and puts it into the sink. stored is nil for a sparse chunk.
func (r *Reader) chunk(stored []byte, x *chunk.Index, i int, box chunk.Box, to Sink) error {
	samples := x.AsStored(stored, i)
	if samples == nil {
		samples = r.samples(x.StoredBytes(i))
		if err := r.decode(samples, stored, x, i, needed(x, i, box)); err != nil {
			return err
		}
	} else {
		r.Clock.Decoded(len(samples))
	}
	to.Put(x, i, samples)
	r.Clock.Lap(resources.StageScatter)
	return nil
}

// needed returns how many of the first pixels of chunk i, row by row, a box needs that ends in the chunk or behind it.
// Of a row whose last pixel in the image it needs, it needs the padding, too, and with it the end of a whole chunk.
func needed(x *chunk.Index, i int, box chunk.Box) int {
	part := x.Box(i)
	_, _, width := x.Stored(i)
	last := width
	if box.X1 < part.X1 {
		last = box.X1 - part.X0
	}
	return (min(box.Y1, part.Y1)-part.Y0-1)*width + last
}

// decode fills samples with the first pixels of chunk i, row by row, and measures the time.
func (r *Reader) decode(samples, stored []byte, x *chunk.Index, i, pixels int) error {
	if r.dry != nil {
		_, _, width := x.Stored(i)
		r.dry.decoded(x, i, x.Place(i), (pixels+width-1)/width)
		return nil
	}
	if err := r.Decoder.DecodeFirst(samples, stored, x, i, pixels); err != nil {
		return fault.AtOffset(err, x.Ranges[i].Off)
	}
	r.Clock.Lap(resources.StagePredictor)
	r.Clock.Decoded(len(samples))
	return nil
}

// partOf names the chunks of a run in errors.
func partOf(run runs.Run) string {
	if len(run.Chunks) == 1 {
		return "chunk " + strconv.Itoa(run.Chunks[0])
	}
	return "chunks " + strconv.Itoa(run.Chunks[0]) + " and following"
}
