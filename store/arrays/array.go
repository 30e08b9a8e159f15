package arrays

import (
	"cmp"
	"context"
	"fmt"
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

// Array is an open array. It is immutable, keeps no file open, and is safe for concurrent use.
type Array struct {
	Meta
	URI  string // of its directory
	Path string // below the group that it was opened through, "" for one opened by itself

	id      uint64 // of no other array
	open    source.Opener
	chunks  Chunks
	objects Objects // the chunks, nil if none of them is an object
	options Options
	bytes   int // of a decoded chunk, 0 if it is over the limit
}

// Chunks finds the chunks of an array. Several workers call it at the same time.
type Chunks interface {
	// Find returns where the chunk with some coordinates is. Its Skip has bits of the filters that the chunk lacks.
	Find(ctx context.Context, at []int64) (chunk.Stored, error)
	// Prepare reads the index of the chunks, if that is one for all of them, so Find need not.
	Prepare(ctx context.Context) error
}

// Objects are Chunks that are objects, or lie in one with others if the metadata has Shards.
type Objects interface {
	Chunks
	// Object returns the URI of the object of a chunk, and Name what the chunk is called in errors.
	Object(at []int64) (uri string)
	Name(at []int64) string
	// IndexBytes returns the bytes that one index of each kind of object takes in Array.Indexes, and those that
	// reading them takes.
	IndexBytes() (kept, read int64, err error)
	// Check gives the chunks of the shard that begins at a cell to a verifier.
	Check(v *Verifier, at, cell []int64) error
}

// arrays counts the arrays of the process.
var arrays atomic.Uint64

// NewArray makes an array of a store. path is below the node that was opened.
func (n *Node) NewArray(uri, path string, m *Meta, chunks Chunks) *Array {
	array := &Array{Meta: *m, URI: uri, Path: path, open: n.open, options: n.options, chunks: chunks}
	array.objects, _ = chunks.(Objects)
	array.id = arrays.Add(1) | 1<<63 // others have low numbers: see catalog.Asset.Source
	array.view()
	array.bytes, _ = m.chunkBytes(n.options.MaxChunk)
	return array
}

// print returns the path of the array and what decides its meaning, for fingerprints.
func (a *Array) print() string { return fmt.Sprintf("%q %s\n", a.Path, a.Text) }

// Text implements store.Group.
func (n *Node) Text(ctx context.Context, path string) string {
	if node, err := n.At(ctx, path); err == nil && node.Array != nil {
		return node.Array.Text
	}
	return ""
}

// Opener opens the files of the array.
func (a *Array) Opener() source.Opener { return a.open }

// Indexes keeps the indexes of objects of all arrays of a store.
func (a *Array) Indexes() *lru.Cache[string, any] { return a.options.memory.indexes }

// view applies the attribute _Unsigned of NetCDF, whose classic form lacks unsigned integers of some sizes: "true" says
// that signed integers are unsigned, "false" that unsigned ones are signed.
func (m *Meta) view() {
	m.stored = m.DType
	integers := [...][2]chunk.DType{{chunk.Int8, chunk.Uint8}, {chunk.Int16, chunk.Uint16}, {chunk.Int32, chunk.Uint32},
		{chunk.Int64, chunk.Uint64}}
	for _, pair := range integers {
		switch unsigned := strings.ToLower(m.Attrs.Text("_Unsigned")); {
		case m.DType == pair[0] && unsigned == "true":
			m.DType = pair[1]
			return
		case m.DType == pair[1] && unsigned == "false" && !m.Bool:
			m.DType = pair[0]
			return
		}
	}
}

// ready returns an error if chunks may not be decoded.
func (a *Array) ready() error {
	_, err := a.chunkBytes(a.options.MaxChunk)
	return fault.WithFile(err, a.URI)
}

// read reads the bytes at a place into b, which it grows if it has to. It reports false if an object that is a chunk
// does not exist.
func (a *Array) read(ctx context.Context, b []byte, p *chunk.Stored) (_ []byte, ok bool, err error) {
	file, err := source.OpenKnown(ctx, a.open, p.URI, source.Known{Size: p.Size, ETag: p.ETag})
	if p.Object && Missing(err) {
		return b[:0], false, nil
	}
	if err != nil {
		return b, false, fault.WithFile(err, p.URI)
	}
	defer file.Close()
	extent, size, limit := p.At, file.Size(), a.maxStored()
	switch {
	case p.Object && size > limit:
		err = fault.New(fault.Limit, "chunk", "%d bytes stored, at most %d", size, limit)
	case p.Object:
		extent = chunk.Range{Len: size}
	// The file may be another one by now, since its index was read earlier.
	case !source.Fits(extent.Off, extent.Len, size):
		err = fault.At(fault.Corrupt, "shard", extent.Off, "%d bytes reach past the file's %d", extent.Len, size)
	}
	if err == nil {
		b = slices.Grow(b[:0], int(extent.Len))[:extent.Len]
		if len(b) > 0 {
			err = file.ReadAt(ctx, b, extent.Off)
		}
	}
	return b, err == nil, fault.WithFile(err, p.URI)
}

// maxStored is the most bytes that a chunk may take: as chunk.Index.MaxCompressed, twice the decoded size, also of what
// it is cut out of, plus 64 KiB.
func (a *Array) maxStored() int64 {
	largest := a.bytes
	for i := range a.steps {
		largest = max(largest, a.steps[i].total)
	}
	return 2*int64(largest) + 64<<10
}

// locate returns where a chunk is, as far as that takes no request once Chunks.Prepare was called.
func (a *Array) locate(at []int64) (place chunk.Stored, exact bool) {
	if a.Shards != nil {
		return chunk.Stored{URI: a.objects.Object(at), Object: true}, false
	}
	place, err := a.Find(context.Background(), at)
	return place, err == nil
}

// Find returns where the chunk with the given coordinates is. One that has more bytes than one can have is an error.
func (a *Array) Find(ctx context.Context, at []int64) (chunk.Stored, error) {
	place, err := a.chunks.Find(ctx, at)
	if err != nil {
		return chunk.Stored{URI: place.URI, Absent: true, Object: place.Object}, fault.WithFile(err, a.URI)
	}
	return place, a.checkStored(&place)
}

// checkStored returns an error if a chunk in an object or a file has more bytes than one can have.
func (a *Array) checkStored(p *chunk.Stored) error {
	if limit := a.maxStored(); p.At.Len > limit {
		return fault.WithFile(fault.At(fault.Limit, "shard index", p.At.Off, "a chunk of %d bytes, at most %d",
			p.At.Len, limit), p.URI)
	}
	return nil
}
