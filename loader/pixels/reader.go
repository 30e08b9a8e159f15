package pixels

import (
	"bufio"
	"context"
	"sync"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/chunk/runs"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
)

// Reader reads windows of assets for one worker. It keeps its buffers between calls, so it is not
// safe for concurrent use.
type Reader struct {
	environment
	version  fileVersion
	last     lastArray
	Decoder  *chunk.Decoder
	plan     plan
	walk     walk // that executes the plan
	indexes  freshness
	Stored   []byte        // the bytes of one run, as stored in the file
	Samples  []byte        // one decoded chunk, or a piece of one
	parts    *bufio.Reader // of the stored bytes of a chunk that is decoded in pieces
	Resample Resampler
	colours  []byte     // the bands of a window of colours, and their validity
	probe    []byte     // see Probe
	Share    Shared     // where decoded chunks of the current asset are shared
	views    *TileCache // chunks that several views of a sample need; nil before the first ones
	arrays   lastArrays[chunk.BlockReader]
	Strict   bool        // chunks of arrays whose files do not exist are errors
	frames   chunk.Index // of the chunks of the current index that recoded has
	below    *Reader     // of the sources of virtual rasters; nil before the first one
}

// environment is what a reader has of its engine: where bytes come from, its turns to decode, and its caches.
type environment struct {
	opener   source.Opener
	maxChunk int
	large    *resources.LargeChunks
	decoders *resources.Decoders
	Client   any              // for whom the reader decodes
	Clock    *resources.Clock // nil: time is not measured
	waits    bool             // for the bytes of remote files: it is one of the decoders only while it decodes
	disk     source.DiskCache
	recoded  *Recoded // nil: chunks are decoded from files each time
}

// fileVersion is the version of the file that is read.
type fileVersion struct {
	local  uint64 // of a local file: another one after it was rewritten; else 0
	object uint64 // the file and its version, for recoded; 0: the version is not known
}

// NewReader returns a reader for one worker of an engine with these options.
func NewReader(o resources.Options) *Reader {
	return &Reader{Decoder: chunk.NewDecoder(nil), environment: environmentOf(o)}
}

// environmentOf returns what a reader has of an engine with these options.
func environmentOf(o resources.Options) environment {
	return environment{opener: o.Opener, maxChunk: o.MaxChunkBytes, large: o.Large(), decoders: o.Decoders,
		waits: o.Waits(), disk: o.Disk}
}

// SetRecoded sets the cache of chunks that decode fast. nil has none.
func (r *Reader) SetRecoded(c *Recoded) { r.recoded = c }

// SetClock sets the clock that measures the stages of the reader. nil stops measuring.
func (r *Reader) SetClock(c *resources.Clock) {
	if r.Clock, r.Decoder.Decompressed = c, nil; c != nil {
		r.Decoder.Decompressed = func() { c.Lap(resources.StageDecode) }
	}
	if r.below != nil {
		r.below.SetClock(c)
	}
}

// idleReaders holds unused readers: a program that reads file after file builds decoder tables and
// buffers once. The garbage collector frees readers that stay idle.
var idleReaders = sync.Pool{New: func() any { return &Reader{Decoder: chunk.NewDecoder(nil)} }}

// BorrowReader returns an idle Reader, or a new one, set to these options. The caller returns it
// with GiveBack.
func BorrowReader(o resources.Options) *Reader {
	reader := idleReaders.Get().(*Reader)
	reader.environment = environmentOf(o)
	return reader
}

// GiveBack returns a borrowed reader. The caller must not use it afterwards.
func (r *Reader) GiveBack() {
	// Only buffers and decoder tables stay. An opener, cache or array that an idle reader held would
	// live on after its engine, and the next borrower would trust files that it never checked.
	r.Close()
	if r.below != nil {
		r.below.GiveBack()
		r.below = nil
	}
	r.environment, r.version, r.last = environment{}, fileVersion{}, lastArray{runs: r.last.runs}
	r.indexes, r.Share, r.arrays, r.frames = freshness{}, Shared{}, nil, chunk.Index{}
	r.Decoder.Decompressed = nil
	idleReaders.Put(r)
}

// Read decodes the chunks of asset a that meet box and hold one of bands, and puts each into sink to.
// If bands is nil, the box says which bands. If a has a mask and masked is not nil, Read also puts the
// mask's chunks that meet box into masked, after the chunks of the image there. Errors name the asset's file.
func (r *Reader) Read(
	ctx context.Context, a catalog.Asset, box chunk.Box, bands []int, to, masked Sink,
) (err error) {
	defer func() { err = a.Fault(err) }()
	if a.Parts != nil {
		return fault.New(fault.Unsupported, "asset", "a stack of rasters is not read here")
	}
	var file source.Reader
	if !a.Index.OfArray() {
		r.Clock.Lap(resources.StageOther)
		file, err = r.open(ctx, &a)
		r.Clock.Lap(resources.StageRead)
		if err != nil {
			return err
		}
		defer file.Close()
	}
	list, n := passes(&a, box, bands, to, masked)
	for i := range list[:n] {
		p := &list[i]
		if err := p.fault(r.pass(ctx, file, p)); err != nil {
			return err
		}
	}
	return nil
}

// open opens the file of an asset and checks that it is still the file that the index describes.
func (r *Reader) open(ctx context.Context, a *catalog.Asset) (source.Reader, error) {
	if r.version = (fileVersion{}); a.Bytes != nil {
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
	if r.version.local = versionOf(file); r.recoded != nil {
		r.version.object = objectOf(a, file, r.version.local)
	}
	return file, nil
}

// waitForMemory waits for room for a large chunk of x. The caller must call done when it has decoded.
func (r *Reader) waitForMemory(ctx context.Context, x *chunk.Index) (done func(), err error) {
	r.Clock.Lap(resources.StageOther)
	free, err := r.large.Take(ctx, x)
	r.Clock.Lap(resources.StageMemory)
	return func() {
		// The buffers go before the room does: kept ones would hold memory that is not counted.
		r.Samples, r.Stored = nil, nil
		free()
	}, err
}

// growSamples makes Samples large enough for any chunk of x.
func (r *Reader) growSamples(x *chunk.Index) {
	if n := x.MaxDecodedBytes() + chunk.Spare; cap(r.Samples) < n {
		r.Samples = cast.Aligned(n)
	}
}

// Work begins the work of a goroutine that reads local files, which it decodes all the time. The caller must call Rest
// before it waits for more of it.
func (r *Reader) Work() {
	if !r.waits {
		r.decoders.Begin(r.Client)
	}
}

// Rest ends what Work began.
func (r *Reader) Rest() {
	if !r.waits {
		r.decoders.End(r.Client)
	}
}

// begin waits until the reader may decode the bytes of a remote file. The caller must call end when it has decoded, and
// before it waits for more of them.
func (r *Reader) begin() {
	if r.waits {
		r.decoders.Begin(r.Client)
	}
	r.Clock.Lap(resources.StageTurn)
}

// end ends what begin began.
func (r *Reader) end() {
	if r.waits {
		r.decoders.End(r.Client)
	}
}

// ReaderBytes is about what a reader holds besides buffers: the tables of its decoders.
const ReaderBytes = 64 << 10

// HeldBytes returns about how many bytes of memory the reader keeps for its next window. For readers of arrays, virtual
// rasters and pieces it is just a large number.
func (r *Reader) HeldBytes() int64 {
	if len(r.arrays) > 0 || r.last.array != nil || r.below != nil || r.parts != nil {
		return MaxRun
	}
	resampled := 4 * (cap(r.Resample.In) + cap(r.Resample.Out)) // with the validity, and scenes of a mosaic
	held := ReaderBytes + int64(cap(r.Stored)+cap(r.Samples)+cap(r.colours)+cap(r.probe)+resampled)
	if r.views != nil {
		held += r.views.Held // of this reader alone
	}
	return held
}

// HeldFor returns about how many bytes a reader holds once it has read planes of x, as HeldBytes says then: their
// chunks as stored, up to one run, and the largest decoded chunk. An array or virtual raster has MaxRun.
func HeldFor(x *chunk.Index, planes []int) int64 {
	if x.OfArray() {
		return MaxRun
	}
	var plan runs.Plan
	plan.Reset(x, chunk.Box{B1: x.Bands, Y1: x.Height, X1: x.Width}, planes)
	stored := int64(0)
	for _, i := range plan.Chunks {
		if stored += min(max(x.Place(i).Len, 0), MaxRun); stored >= MaxRun {
			return MaxRun
		}
	}
	return ReaderBytes + stored + int64(x.MaxDecodedBytes()) + chunk.Spare
}

// ForViews returns the reader's own cache of chunks that several views of a sample need.
func (r *Reader) ForViews() *TileCache {
	if r.views == nil {
		r.views = NewViewTiles(false)
	}
	return r.views
}
