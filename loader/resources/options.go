package resources

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"sync"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/procs"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
)

// Defaults of Options.
const (
	DefaultFetchers      = 32
	maxFetchers          = 1280      // as many as a store is asked at a time: remote.DefaultConcurrency
	DefaultMemoryBytes   = 256 << 20 // of small batches
	DefaultMaxChunkBytes = 64 << 20
	DefaultCacheBytes    = 64 << 20
	DefaultRecodeShare   = 0.1
)

// Options say how an engine works. They change no byte of any batch.
type Options struct {
	// Workers is how many goroutines decode. Default: GOMAXPROCS, or in the command built with libzstd
	// the number of processors.
	Workers int
	// Fetchers is how many goroutines read remote files, if that is more than Workers. Each holds the
	// bytes of one run of chunks (at most 4 MiB, or one chunk) and one decoded chunk. Default
	// DefaultFetchers, and more for small samples.
	Fetchers int
	// MemoryBytes bounds the memory of all batches that are being filled or not yet released, in
	// bytes, and of decoded chunks that windows share, which take what four batches leave, at most a
	// quarter. Default: eight batches of all rows of a step and the pools of tiles, but at least
	// DefaultMemoryBytes and at most a quarter of the memory that the process may use. A batch
	// larger than the memory is an error of kind limit. Batches that are kept hold back further
	// ones: an engine needs room for one batch of every loader and stream that uses it, and for all
	// that are kept.
	MemoryBytes int64
	// MaxChunkBytes bounds one decoded chunk, and the bytes read at once, in bytes. A worker holds at most twice
	// that, and as much again for each of the last four arrays that it read. Default DefaultMaxChunkBytes. Larger
	// chunks are decoded in pieces of rows (chunk.Index.InPieces), or refused if they cannot be. Together, workers
	// decode whole chunks over DefaultMaxChunkBytes within MemoryBytes (or DefaultMemoryBytes, if that is more), but
	// always at least one at a time, and keep none of them.
	MaxChunkBytes int
	// CacheBytes bounds the parsed headers and table pages kept, in bytes. Default DefaultCacheBytes.
	CacheBytes int64
	// Recode keeps chunks that were decoded once in a form that decodes fast, which idle workers encode, and busy
	// ones within RecodeShare: from the second epoch on they take less work. With MemoryBytes they take at most a
	// quarter of it, else an eighth of the machine's memory or a quarter of Budget, and what others need they give
	// back. Chunks for which memory has no room go to Disk.
	Recode bool
	// VerifyContents marks contents by the tensors of some samples, in place of entity tags and times: see
	// Engine.Marks.
	VerifyContents bool
	// RecodeShare is the most time that encoding takes while all workers are busy, as a part of theirs. Default
	// DefaultRecodeShare.
	RecodeShare float64
	// Roots are the directories in which local files must lie. nil allows every file, an empty list
	// none.
	Roots []string
	// Opener opens files, local ones only without Roots. Default: openers.Files. To keep files open from one
	// call to the next with Roots, give openers.Below(opener, Roots).
	Opener source.Opener
	// Disk is the cache on disk in which Opener keeps ranges of remote files, if it has one: an engine says to it what
	// is read next. It is a diskcache.Ref.
	Disk source.DiskCache
	// AllColumns reads all columns of a CSV table or of items, for Engine.Data. By default only those that the spec
	// needs are read.
	AllColumns bool
	// ArrayKey is the key of encrypted TileDB arrays, 32 bytes. Default: the key in the environment
	// (store.KeyFromEnv).
	ArrayKey []byte
	// Alloc allocates the memory of a batch: n bytes with any content. Default: NewHeap.
	Alloc func(n int) batch.Buffer
	// Budget, if it is not nil, bounds the memory of all engines and reads that share it. Of an engine, it holds the
	// tables and listings, CacheBytes (at most 1/64 of the budget, and then CacheBytes is that), and the batches.
	// Beyond two batches, an engine takes what others leave. Workers' chunks are not counted.
	Budget *Budget
	// Decoders, if it is not nil, bounds how many goroutines of one client decode at a time, in all engines and reads
	// that share it.
	Decoders *Decoders
	// Stages, if it is not nil, counts the time that workers spend in each stage.
	Stages *Stages
	// Members, if it is not nil, keeps containers open from one raster.Read to the next. It needs an
	// Opener, because the default one is closed after each Read.
	Members *Members
	// SQLLimits bound each query of conditions. Default: see tables.QueryLimits.
	SQLLimits tables.QueryLimits
	// Logger logs warnings, such as samples that are left out. Default: slog.Default.
	Logger *slog.Logger

	waits bool         // see Waits
	most  int          // see MostFetchers
	large *LargeChunks // shared by all readers with these options
	own   io.Closer    // the opener, if WithDefaults made it, else nil
}

// Resolve returns the path to open for p, without links if there are Roots. It expects the options of
// WithDefaults.
func (o *Options) Resolve(p string) (string, error) { return openers.RootsOf(o.Opener).Allow(p) }

// Large bounds the memory of large chunks. It is nil, for no bound, before WithDefaults.
func (o *Options) Large() *LargeChunks { return o.large }

// OwnOpener reports whether WithDefaults made Opener, which CloseOpener then closes.
func (o *Options) OwnOpener() bool { return o.own != nil }

// CloseOpener closes the opener if WithDefaults made it. It drops the error, because the files were
// only read.
func (o Options) CloseOpener() {
	if o.own != nil {
		_ = o.own.Close()
	}
}

// WithDefaults returns the options with the default of every field that is not set, except of
// MemoryBytes, whose default depends on the size of a batch. If it sets Opener, the caller must call
// CloseOpener at the end.
func (o Options) WithDefaults() Options {
	o.Workers = cmp.Or(o.Workers, procs.Workers())
	if o.Fetchers == 0 {
		o.Fetchers, o.most = DefaultFetchers, maxFetchers
	}
	o.MaxChunkBytes = cmp.Or(o.MaxChunkBytes, DefaultMaxChunkBytes)
	o.CacheBytes = cmp.Or(o.CacheBytes, DefaultCacheBytes)
	o.RecodeShare = cmp.Or(o.RecodeShare, DefaultRecodeShare)
	if o.large == nil {
		o.large = NewLargeChunks(largeBytes(o.MemoryBytes, o.Budget.Limit()))
	}
	if o.Opener == nil && o.Roots == nil {
		files := &openers.Files{}
		o.Opener, o.own = files, files
	}
	if below := openers.Below(o.Opener, o.Roots); openers.RootsOf(below) != openers.RootsOf(o.Opener) {
		o.Opener = below
		o.own, _ = below.(io.Closer)
	}
	if o.Alloc == nil {
		o.Alloc = batch.NewHeap
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

// maxGoroutines bounds Workers and Fetchers: each takes memory for a chunk, so a larger number is a
// slip.
const maxGoroutines = 4096

// Validate returns an error if a field is out of range. It expects the options of WithDefaults.
func (o Options) Validate() error {
	between := func(name string, n int) error {
		if n < 1 || n > maxGoroutines {
			return fmt.Errorf("options: %s is %d: it must be in 1..%d", name, n, maxGoroutines)
		}
		return nil
	}
	atLeast := func(name string, n, least int64) error {
		if n < least {
			return fmt.Errorf("options: %s is %d: it must be at least %d", name, n, least)
		}
		return nil
	}
	return cmp.Or(
		between("Workers", o.Workers), between("Fetchers", o.Fetchers), atLeast("MemoryBytes", o.MemoryBytes, 0),
		atLeast("MaxChunkBytes", int64(o.MaxChunkBytes), 1), atLeast("CacheBytes", o.CacheBytes, 1),
		o.checkRecodeShare(),
	)
}

// checkRecodeShare checks RecodeShare.
func (o *Options) checkRecodeShare() error {
	if o.RecodeShare > 0 && o.RecodeShare <= 1 {
		return nil
	}
	return fmt.Errorf("options: RecodeShare is %g: it must be above 0 and at most 1", o.RecodeShare)
}

// Members keeps the containers open into which paths of raster.Read lead ("data.taco::roi_1/lrf::2"),
// with their tables and headers, so the next path into one costs only its own raster. A container
// whose files have changed is opened again; remote ones are checked every few seconds. The zero value
// is ready to use and safe for concurrent use. Close it after the last Read.
type Members struct {
	// MaxBytes bounds the memory of the containers that are kept. Default DefaultMembersBytes.
	MaxBytes int64

	mu    sync.Mutex // guards cache: Close may come while a first Read creates it
	cache io.Closer
}

// DefaultMembersBytes is the default of Members.MaxBytes. The tables of a container of a million rows
// take about 80 MB, so three of them fit.
const DefaultMembersBytes = 256 << 20

// Cache returns the cache of containers, which open creates at the first call. Its type is open's,
// because this package must not import the packages of containers.
func (m *Members) Cache(open func(maxBytes int64) io.Closer) io.Closer {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cache == nil {
		m.cache = open(cmp.Or(m.MaxBytes, DefaultMembersBytes))
	}
	return m.cache
}

// Close closes the containers that are kept open.
func (m *Members) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cache != nil {
		_ = m.cache.Close() // they were only read
	}
}
