package dryrun

import (
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/source"
)

// DefaultSamples is the default of Options.Samples.
const DefaultSamples = 1 << 17

// Options say for which run a forecast is.
type Options struct {
	// Epoch is the epoch to examine.
	Epoch uint64
	// Weights of a state draw the samples from their places on.
	Weights []steps.Change
	// Rank and World: the engine serves this rank alone. Default: the engine serves all rows of
	// every step, in the order in which a single rank asks for them.
	Rank, World int
	// Prefetch is loader.LoaderOptions.Prefetch. Default loader.Engine.Prefetch.
	Prefetch int
	// Samples bounds the samples to examine. In a longer epoch some steps stand for all. Default
	// DefaultSamples; below 0 there is no bound.
	Samples int64
	// Cache counts what a folder would have of remote files, if it is not nil. Forecasts of following epochs share it.
	// They examine all samples.
	Cache Cache
	// Progress is called after every step, from one goroutine, with numbers of steps.
	Progress func(done, total int64)
}

// Cache counts what a cache on disk would have: a diskcache.Simulation, which says what its methods do.
type Cache interface {
	Begin(epoch uint64)
	Place(samples int64, epoch uint64, position int64) int64
	Add(at int64, uri string, bytes source.Range, kept, foresees bool)
	Announced(end int64)
	Known(ahead int64) bool
	Next(end int64) bool
	Found() (hit, missed int64)
	Bytes() int64
}

// Work is what batches cost.
type Work struct {
	// Rows counts samples, without padding. Bad counts those that cannot be read, if headers and tables show it. The
	// work includes their substitutes, and the readable parts of bad samples.
	Rows int64 `json:"rows"`
	Bad  int64 `json:"bad"`
	// Opens counts assets opened, once for every window. Requests counts reads of pixels after adjacent chunks are
	// joined, and Bytes their bytes, with the gaps between chunks.
	Opens    int64 `json:"opens"`
	Requests int64 `json:"requests"`
	Bytes    int64 `json:"bytes"`
	// Needed counts the chunks that windows touch, each for every window. Chunks counts those that
	// are decoded: fewer if windows share decoded tiles. Decoded is their size in bytes; some
	// codecs skip the last rows of a chunk that no window needs.
	Needed  int64 `json:"needed"`
	Chunks  int64 `json:"chunks"`
	Decoded int64 `json:"decoded"`
}

// figures returns all figures.
func (w *Work) figures() [8]*int64 {
	return [...]*int64{&w.Rows, &w.Bad, &w.Opens, &w.Requests, &w.Bytes, &w.Needed, &w.Chunks, &w.Decoded}
}

// Add adds the work of o.
func (w *Work) Add(o Work) {
	other := o.figures()
	for i, n := range w.figures() {
		*n += *other[i]
	}
}

// Max keeps the larger of every figure.
func (w *Work) Max(o Work) {
	other := o.figures()
	for i, n := range w.figures() {
		*n = max(*n, *other[i])
	}
}

// Times returns the work multiplied by a factor, rounded.
func (w Work) Times(f float64) Work {
	for _, n := range w.figures() {
		*n = int64(float64(*n)*f + 0.5)
	}
	return w
}

// SourceWork is the work for the samples of one source.
type SourceWork struct {
	Name   string `json:"name,omitempty"`
	Source string `json:"source"`
	Work
}

// Memory is the memory of a run in bytes.
type Memory struct {
	// Batch is one batch. Batches is how many exist at the same time: those that workers fill, as
	// many as fit, and the one that the caller holds.
	Batch   int64 `json:"batch"`
	Batches int   `json:"batches"`
	// Short is the last batch of an epoch, if it has fewer rows of a rank: it lies beside the others.
	Short int64 `json:"short,omitempty"`
	// Tiles bounds the decoded tiles that windows share.
	Tiles int64 `json:"tiles"`
	// Blocks bounds the bytes of remote files that are kept for the samples of a pool of blocks.
	Blocks int64 `json:"blocks,omitempty"`
	// Recoded bounds the chunks in a form that decodes fast (resources.Options.Recode): at most 1.3 times the bytes of
	// the epoch. What finds no room goes to the cache on disk, if there is one.
	Recoded int64 `json:"recoded,omitempty"`
	// Worker is the most that one worker holds: the bytes of a run of chunks, a decoded chunk, the
	// pixels of a resampled window before and after, and what its readers of arrays hold. There are
	// Workers of them; for remote files Options.Fetchers, and more if Worker is small.
	Worker  int64 `json:"worker"`
	Workers int   `json:"workers"`
	// Catalog bounds the parsed headers and pages of tables.
	Catalog int64 `json:"catalog"`
}

// Total returns the sum in bytes.
func (m Memory) Total() int64 {
	return m.Batch*int64(m.Batches) + m.Short + m.Tiles + m.Blocks + m.Recoded + m.Worker*int64(m.Workers) + m.Catalog
}

// Forecast is the expected cost of an epoch.
type Forecast struct {
	Epoch   uint64 `json:"epoch"`
	Samples int64  `json:"samples"` // of an epoch
	Steps   int64  `json:"steps"`
	Rank    int    `json:"rank"`
	World   int    `json:"world"`
	// Examined is how many steps were examined. If they are not all, Total is scaled up.
	Examined int64 `json:"examined"`
	// Evicted counts the tiles that made room for others. If there are any, the number of chunks decoded again
	// depends on the order of the workers, and the figures hold for one worker.
	Evicted int64 `json:"evicted"`
	// Total is the work of the epoch, Mean the work of an average step. Most has the largest of each
	// figure among the examined steps.
	Total   Work         `json:"total"`
	Mean    Work         `json:"mean"`
	Most    Work         `json:"most"`
	Sources []SourceWork `json:"sources"`
	Memory  Memory       `json:"memory"`
	// RecodedEpochs is after how many epochs all chunks are held in a form that decodes fast
	// (resources.Options.Recode) if no worker is ever idle; idle workers hold them after one. 0: memory has no room
	// for all, or none are held.
	RecodedEpochs int `json:"recoded_epochs,omitempty"`
	// InFlight is how many requests an engine sends at a time if the files are remote, or were.
	InFlight int `json:"in_flight"`
	// Variance is the variance of a mean over a batch, relative to that after a shuffle of all samples, if the rows are
	// sorted by what the mean is of: the price of Spec.Blocks, without which it is 0.
	Variance float64 `json:"variance,omitempty"`
	// Gap is the gap, in bytes, up to which two ranges of a remote file are assumed to be read as one; 0 without remote
	// files. In a run it follows the link, from source.MinGap to source.MaxGap; with a cache on disk it does not.
	Gap int64 `json:"gap,omitempty"`
	// Loose is true if reads depend on coordinates that no header has: of the sparse
	// fragments of dense arrays. Requests is an estimate then, and Bytes counts all tiles that may
	// be read. It is also true if chunks are decoded in pieces, whose reads stop after the last row of
	// a window: Requests and Bytes then count whole chunks. And it is true if windows in work at the same time share
	// chunks, which are read and decoded once if they are known early enough: Chunks counts them for each. And it is
	// true for windows of remote files that no catalog knows, and for members of remote containers: the bytes that came
	// with their headers are not read again while they are in memory. And it is true if the link decides which ranges
	// are read as one. And it is true if pages of tables are counted, by the sizes of the first raster in a cell.
	Loose bool `json:"loose,omitempty"`
	// FirstBad is the error of the first bad sample.
	FirstBad string `json:"first_bad,omitempty"`
	// Cached is what Options.Cache saves in the epoch.
	Cached CachedEpoch `json:"-"`
	// LeftOut is how many scenes no window on the ground can show: they cannot be read, or lie off the map. FirstLeft
	// is the error of one.
	LeftOut   int64  `json:"left_out,omitempty"`
	FirstLeft string `json:"first_left,omitempty"`
}

// CachedEpoch is what a cache on disk saves in an epoch, in bytes.
type CachedEpoch struct {
	Epoch uint64 `json:"epoch"`
	Cache int64  `json:"from_cache"`
	Store int64  `json:"from_store"`
}

// Exact reports whether a run has exactly the requests, bytes and chunks of the forecast. That
// needs all steps examined and no bad sample. For arrays, whose readers keep the last tile, and for
// samples that share decoded tiles, the chunks are exact if Evicted is 0, the other figures only
// with one worker. It holds for the first epoch of an engine, because the next one begins with
// tiles in memory.
func (f *Forecast) Exact() bool { return f.Examined == f.Steps && f.Total.Bad == 0 && !f.Loose }

// Count adds what a dry reader would have read and decoded.
func (w *Work) Count(reads *pixels.Reads) {
	for _, run := range reads.Runs {
		w.Requests += run.Requests
		w.Bytes += run.Len - run.InMemory
	}
	for _, chunk := range reads.Chunks {
		w.Chunks++
		w.Decoded += int64(chunk.Decoded)
	}
}
