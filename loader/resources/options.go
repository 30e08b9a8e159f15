package resources

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"

	"github.com/chaski-eo/chaski/internal/procs"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/query"
)

// Defaults of Options.
const (
	DefaultFetchers      = 32
	DefaultMemoryBytes   = 256 << 20 // of small batches
	DefaultMaxChunkBytes = 64 << 20
	DefaultCacheBytes    = 64 << 20
)

// NoIndexCache is the Options.IndexCache of an engine that keeps no indexes on disk.
const NoIndexCache = "none"

// Options say how an engine works. They change no byte of any batch.
type Options struct {
	// Workers decode in parallel. Default: GOMAXPROCS; in the command built with libzstd, the processors.
	Workers int
	// Fetchers read remote files at the same time, where that is more than Workers: samples that are under way. Each
	// holds the bytes of one run of chunks (at most 4 MiB, or one chunk) and one decoded chunk. Default
	// DefaultFetchers.
	Fetchers int
	// MemoryBytes bounds the memory of all batches that are being filled or not yet released, in
	// bytes. Default: four batches of all rows of a step and the pools of tiles, but at least
	// DefaultMemoryBytes and at most a quarter of the memory that the process may use. A batch
	// larger than the memory is an error of kind limit. Batches that are kept hold back further
	// ones: an engine needs room for one batch of every loader and stream that uses it, and for all
	// that are kept.
	MemoryBytes int64
	// MaxChunkBytes bounds one decoded chunk, and the bytes read at once, in bytes; a worker holds
	// at most twice that, and as much again for each of the last four arrays that it read. Default
	// DefaultMaxChunkBytes. Of chunks over DefaultMaxChunkBytes workers decode at the same time only as many as
	// MemoryBytes has room for (or DefaultMemoryBytes, if that is more), at least one, and keep none.
	MaxChunkBytes int
	// CacheBytes bounds the parsed headers and table pages kept, in bytes. Default DefaultCacheBytes.
	CacheBytes int64
	// Roots are the folders that local files may lie in. nil allows every file, an empty list none.
	Roots []string
	// Opener opens files. Default: source.Files.
	Opener source.Opener
	// IndexCache is the folder in which the chunk indexes of rasters in containers are kept from run to run.
	// Default: chaski/indexes in the user's folder for caches; NoIndexCache for none.
	IndexCache string
	// ArrayKey is the key of encrypted TileDB arrays, 32 bytes. Default: that of the environment
	// (tiledb.KeyFromEnv).
	ArrayKey []byte
	// Alloc makes the memory of batches, of n bytes with any content. Default: memory of the garbage
	// collector.
	Alloc func(n int) Buffer
	// Stages, if it is not nil, gets where the time of the workers goes.
	Stages *Stages
	// Members, if it is not nil, keeps containers open from one Read to the next. Opener has to be set then.
	Members *Members
	// SQL runs a query that package query does not read, of the conditions of a subset, over the tables with the given
	// names; it sees nothing else. Default: such a query is of kind unsupported.
	SQL func(ctx context.Context, sql string, names []string, tables query.Tables) (*tables.Table, error)
	// Logger gets what is worth telling. Default: slog.Default.
	Logger *slog.Logger

	Turns    Turns         // of those that decode
	Large    *LargeChunks  // those over DefaultMaxChunkBytes
	OwnFiles *source.Files // the default opener, closed by whoever made it
}

// CloseOpener closes the opener if it is the default one. Its files were only read: that closing one
// fails has no consequence.
func (o Options) CloseOpener() {
	if o.OwnFiles != nil {
		_ = o.OwnFiles.Close()
	}
}

func (o Options) WithDefaults() Options {
	if o.Workers == 0 {
		o.Workers = procs.Workers()
	}
	if o.Fetchers == 0 {
		o.Fetchers = DefaultFetchers
	}
	if o.MaxChunkBytes == 0 {
		o.MaxChunkBytes = DefaultMaxChunkBytes
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = DefaultCacheBytes
	}
	if o.Large == nil {
		o.Large = NewLargeChunks(max(o.MemoryBytes, DefaultMemoryBytes))
	}
	if o.Opener == nil {
		o.OwnFiles = &source.Files{}
		o.Opener = o.OwnFiles
	}
	if o.Alloc == nil {
		o.Alloc = NewHeap
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

func (o Options) Validate() error {
	switch {
	case o.Workers < 1 || o.Workers > 4096:
		return fmt.Errorf("options: %d workers", o.Workers)
	case o.Fetchers < 1 || o.Fetchers > 4096:
		return fmt.Errorf("options: %d fetchers", o.Fetchers)
	case o.MemoryBytes < 0:
		return fmt.Errorf("options: %d bytes of memory", o.MemoryBytes)
	case o.MaxChunkBytes < 1:
		return fmt.Errorf("options: MaxChunkBytes is %d: it must be at least 1", o.MaxChunkBytes)
	case o.CacheBytes < 1:
		return fmt.Errorf("options: a cache of %d bytes", o.CacheBytes)
	}
	return nil
}

// Members keeps containers open that names of Read lead into ("data.taco::roi_1/lrf::2"), with their tables and
// headers, so that the next name costs only what it names. A container whose files have changed is opened anew;
// remote ones are checked every few seconds. The zero value is ready, and is safe for concurrent use. Close it.
type Members struct {
	// MaxBytes bounds the memory of the containers that are kept. Default DefaultMembersBytes.
	MaxBytes int64

	mu   sync.Mutex // guards kept: Close may come while a first Read creates it
	kept io.Closer
}

// DefaultMembersBytes is the default of Members.MaxBytes: the tables of a container of a million rows take about
// 80 MB, so that three of them fit.
const DefaultMembersBytes = 256 << 20

// Cache returns the cache of containers, which open creates the first time. Its type is the opener's, because
// options must not know containers.
func (m *Members) Cache(open func(maxBytes int64) io.Closer) io.Closer {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept == nil {
		m.kept = open(cmp.Or(m.MaxBytes, DefaultMembersBytes))
	}
	return m.kept
}

// Close closes the containers that are kept open.
func (m *Members) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept != nil {
		_ = m.kept.Close() // they were only read
	}
}
