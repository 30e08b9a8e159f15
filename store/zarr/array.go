package zarr

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/lru"
	"github.com/chaski-eo/chaski/source"
)

// Options for opening arrays.
type Options struct {
	// MaxChunk bounds a decoded chunk in bytes. Default 256 MiB.
	MaxChunk int64
	// MaxIndexes bounds the bytes of shard indexes that the arrays of one Open keep. Default 16 MiB, the indexes of
	// some million chunks. What Raster returns has room for one index of each level of each of its arrays even if
	// that is more: else each chunk would read them again.
	MaxIndexes int64
	// MaxMeta bounds the bytes of metadata, which then are not charged to the account of the context: it is for those
	// who keep some nodes within a bound of their own (Node.Held). Default 512 MiB.
	MaxMeta int64

	memory *memoryCount // nil until Open
}

func (o Options) withDefaults(account *budget.Account) Options {
	if o.MaxChunk <= 0 {
		o.MaxChunk = 256 << 20
	}
	if o.MaxIndexes <= 0 {
		o.MaxIndexes = 16 << 20
	}
	if o.MaxMeta > 0 {
		account = nil
	}
	if o.memory == nil {
		o.memory = newMemory(account, o.MaxIndexes, cmp.Or(o.MaxMeta, maxHeld))
	}
	return o
}

// Array is an open array. It keeps no file open, does not change, and is safe for concurrent use.
type Array struct {
	Meta
	URI  string // of its directory
	Path string // below the group that it was opened through, "" for one opened by itself

	id      uint64 // of no other array
	open    source.Opener
	foreign *foreign // of an array in a file of another format, nil of one in Zarr
	options Options
	bytes   int                             // of a decoded chunk, 0 if it is over the limit
	indexes *lru.Cache[string, *shardIndex] // of all arrays of one Open
}

// arrays counts the arrays of the process.
var arrays atomic.Uint64

// newArray makes an array of metadata.
func newArray(o source.Opener, uri, path string, m *Meta, opt Options) *Array {
	opt = opt.withDefaults(nil)
	array := &Array{Meta: *m, URI: uri, Path: path, open: o, options: opt}
	array.id = arrays.Add(1) | 1<<63 // others have low numbers: see catalog.Asset.Source
	array.view()
	array.indexes = opt.memory.indexes
	array.bytes, _ = m.chunkBytes(opt.MaxChunk)
	return array
}

// view applies the attribute _Unsigned of NetCDF, whose classic form has no unsigned integers of some sizes: "true"
// says that signed integers are unsigned, "false" the opposite.
func (m *Meta) view() {
	m.stored = m.DType
	integers := [...][2]chunk.DType{{chunk.Int8, chunk.Uint8}, {chunk.Int16, chunk.Uint16}, {chunk.Int32, chunk.Uint32},
		{chunk.Int64, chunk.Uint64}}
	for _, pair := range integers {
		switch said := strings.ToLower(m.Attrs.Text("_Unsigned")); {
		case m.DType == pair[0] && said == "true":
			m.DType = pair[1]
			return
		case m.DType == pair[1] && said == "false" && !m.Bool:
			m.DType = pair[0]
			return
		}
	}
}

// leastIndexes returns the bytes that one index of each level takes in the cache.
func (a *Array) leastIndexes() (n int64) {
	for i := range a.shards {
		_, entries, err := a.shards[i].indexSize()
		if err != nil {
			return 0 // nothing of the array is read
		}
		// The name of an object has at most 21 bytes for each dimension, as the number of a chunk in a shard has.
		key := int64(len(a.URI)) + 21*int64(len(a.Shape)+len(a.shards)+1)
		n += indexCost(key, entries) + lru.Overhead
	}
	return n
}

// indexCost returns the bytes of an index in the cache, without the overhead of the cache.
func indexCost(key int64, entries int) int64 { return key + indexEntry*int64(entries) + 128 }

// ready returns an error if chunks may not be decoded.
func (a *Array) ready() error {
	_, err := a.chunkBytes(a.options.MaxChunk)
	return fault.WithFile(err, a.URI)
}

// read reads the bytes at a place into b, which it grows if it has to. It reports false if an object that is a chunk
// does not exist.
func (a *Array) read(ctx context.Context, b []byte, p *chunk.Stored) (_ []byte, ok bool, err error) {
	file, err := source.OpenKnown(ctx, a.open, p.URI, source.Known{Size: p.Size, ETag: p.ETag})
	if p.Object && missing(err) {
		return b[:0], false, nil
	}
	if err != nil {
		return b, false, fault.WithFile(err, p.URI)
	}
	defer file.Close()
	at, size, limit := p.At, file.Size(), a.maxStored()
	switch {
	case p.Object && size > limit:
		err = fault.New(fault.Limit, "chunk", "%d bytes stored, at most %d", size, limit)
	case p.Object:
		at = chunk.Range{Len: size}
	// The file may be another one by now, since its index was read earlier.
	case !source.Fits(at.Off, at.Len, size):
		err = fault.At(fault.Corrupt, "shard", at.Off, "%d bytes reach past the file's %d", at.Len, size)
	}
	if err == nil {
		b = slices.Grow(b[:0], int(at.Len))[:at.Len]
		if len(b) > 0 {
			err = file.ReadAt(ctx, b, at.Off)
		}
	}
	return b, err == nil, fault.WithFile(err, p.URI)
}

// maxStored is the most bytes that a chunk may take: as chunk.Index.MaxCompressed, twice the decoded size plus 64 KiB.
func (a *Array) maxStored() int64 { return 2*int64(a.bytes) + 64<<10 }

// Text returns the metadata that decides the meaning of the chunks, for fingerprints.
func (m *Meta) Text() string { return m.raw }
