package zarr

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/arrays"
)

// shardIndex is the index of one shard: where its chunks are in the object. It does not change.
type shardIndex struct {
	object source.Known // of the object, which saves requests when it is opened again
	absent bool         // the object, or the chunk of the outer shard, does not exist
	at     []chunk.Range
}

const (
	shardPart = "shard index"
	sumBytes  = 4 // of a checksum, little-endian
	// maxIndexEntries bounds the chunks of a shard: its index has 16 bytes for each. 2^22 are 64 MiB.
	maxIndexEntries = 1 << 22
	// indexEntry is the size of an entry: an offset and a length of 8 bytes.
	indexEntry = 16
	// noChunk is the offset and the length of a chunk that was not written.
	noChunk = math.MaxUint64
)

// indexSize returns the bytes of the index.
func (s *shardLevel) indexSize() (n int, entries int, err error) {
	chunks := arrays.Cells(s.grid, maxIndexEntries)
	if chunks < 0 {
		return 0, 0, fault.New(fault.Limit, shardPart, "a shard of %v chunks, at most %d", s.grid, maxIndexEntries)
	}
	n = int(chunks) * indexEntry
	if s.sum {
		n += sumBytes // of the CRC-32C behind the entries
	}
	return n, int(chunks), nil
}

// parse reads the index of a shard that has size bytes from base on.
func (s *shardLevel) parse(b []byte, base, size int64) ([]chunk.Range, error) {
	if s.sum {
		body := b[:len(b)-sumBytes]
		if arrays.CRC32C(body) != binary.LittleEndian.Uint32(b[len(body):]) {
			return nil, fault.New(fault.Corrupt, shardPart, "the checksum does not match")
		}
		b = body
	}
	order := binary.ByteOrder(binary.LittleEndian)
	if s.big {
		order = binary.BigEndian
	}
	list := make([]chunk.Range, len(b)/indexEntry)
	for i := range list {
		off, length := order.Uint64(b[i*indexEntry:]), order.Uint64(b[i*indexEntry+8:])
		if off == noChunk && length == noChunk {
			list[i] = chunk.Range{Off: -1}
			continue
		}
		if off > uint64(size) || length > uint64(size)-off {
			return nil, fault.New(fault.Corrupt, shardPart,
				"chunk %d: %d bytes at %d in a shard of %d", i, length, off, size)
		}
		list[i] = chunk.Range{Off: base + int64(off), Len: int64(length)}
	}
	return list, nil
}

// read reads the index of a shard that has size bytes from base on in an object.
func (s *shardLevel) read(ctx context.Context, r source.Reader, base, size int64) ([]chunk.Range, error) {
	length, _, err := s.indexSize()
	if err != nil {
		return nil, err
	}
	// The index must fit in its shard: the allocation is at most as large as the object.
	if int64(length) > size {
		return nil, fault.New(fault.Corrupt, shardPart, "it has %d bytes, the shard %d", length, size)
	}
	pos := base
	if !s.atStart {
		pos += size - int64(length)
	}
	data, err := source.Read(ctx, r, pos, int64(length))
	if err != nil {
		return nil, err
	}
	list, err := s.parse(data, base, size)
	return list, fault.AtOffset(err, pos)
}

// index returns the index of the shard at a level with the given key: the name of its object and, for shards in
// shards, the number of the chunk at each level before.
func (a *objects) index(ctx context.Context, uri string, inside []int64) (*shardIndex, error) {
	key := uri
	for _, i := range inside {
		key += string(binary.AppendVarint([]byte{0}, i))
	}
	if x, ok := a.Indexes().Get(key); ok {
		return x.(*shardIndex), nil
	}
	index, err := a.readIndex(ctx, uri, inside)
	if err != nil {
		return nil, fault.WithFile(err, uri)
	}
	a.Indexes().Add(key, index, indexCost(int64(len(key)), len(index.at)))
	return index, nil
}

func (a *objects) readIndex(ctx context.Context, uri string, inside []int64) (*shardIndex, error) {
	level := len(inside)
	if level > 0 {
		outer, err := a.index(ctx, uri, inside[:level-1])
		if err != nil {
			return nil, err
		}
		span := chunk.Range{Off: -1}
		if !outer.absent {
			span = outer.at[inside[level-1]]
		}
		if span.Off < 0 {
			return &shardIndex{absent: true}, nil
		}
		file, err := source.OpenKnown(ctx, a.Opener(), uri, outer.object)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		x := &shardIndex{object: outer.object}
		x.at, err = a.shards[level].read(ctx, file, span.Off, span.Len)
		return x, err
	}
	if size := a.shardBytes(); source.SpansOf(ctx) != nil && size <= maxWhole {
		ctx = source.WithWhole(ctx, size+size/8+64<<10) // all of it is needed soon
	}
	object, err := a.Opener().Open(ctx, uri)
	if arrays.Missing(err) {
		return &shardIndex{absent: true}, nil
	}
	if err != nil {
		return nil, err
	}
	defer object.Close()
	index := &shardIndex{object: source.Known{Size: object.Size(), ETag: source.ETag(object)}}
	reader := object
	if !a.shards[0].atStart {
		// The reader of an object of known size asks for exactly the index, not for a block around it.
		if reader, err = source.OpenKnown(ctx, a.Opener(), uri, index.object); err != nil {
			return nil, err
		}
		defer reader.Close()
	}
	index.at, err = a.shards[0].read(ctx, reader, 0, object.Size())
	return index, err
}

// maxWhole bounds the shards that are read as they are opened, decoded bytes.
const maxWhole = 4 << 20

// shardBytes returns the bytes of the chunks of a shard, decoded; more than maxWhole for large ones.
func (a *objects) shardBytes() int64 {
	chunks := arrays.Cells(a.shards[0].grid, maxWhole)
	cells := arrays.Cells(a.shards[0].inner, maxWhole)
	if chunks < 0 || cells < 0 || chunks > maxWhole/max(cells, 1) {
		return math.MaxInt64
	}
	return chunks * cells * int64(a.DType.Size())
}

// Prepare implements arrays.Chunks.
func (a *objects) Prepare(context.Context) error { return nil }

// Find implements arrays.Chunks. It makes requests only if the array has shards.
func (a *objects) Find(ctx context.Context, at []int64) (chunk.Stored, error) {
	uri := a.Object(at)
	if len(a.shards) == 0 {
		return chunk.Stored{URI: uri, Object: true}, nil
	}
	var span chunk.Range
	var known source.Known
	inside := make([]int64, 0, len(a.shards))
	for level := range a.shards {
		shard := &a.shards[level]
		index, err := a.index(ctx, uri, inside)
		if err != nil || index.absent {
			return chunk.Stored{URI: uri, Absent: true, Object: true}, err
		}
		number := int64(0)
		for d := range at {
			number = number*shard.grid[d] + at[d]/(shard.inner[d]/a.Chunks[d])%shard.grid[d]
		}
		if span, known = index.at[number], index.object; span.Off < 0 {
			return chunk.Stored{Absent: true}, nil
		}
		inside = append(inside, number)
	}
	return chunk.Stored{URI: uri, Size: known.Size, ETag: known.ETag, At: span}, nil
}
