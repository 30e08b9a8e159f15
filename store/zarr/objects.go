package zarr

import (
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/lru"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/arrays"
)

// objects are the chunks of an array, each an object or a part of one. It implements arrays.Objects.
type objects struct {
	*arrays.Array
	keys   keys
	shards []shardLevel
}

// newArray makes an array of its metadata.
func newArray(n *arrays.Node, uri, path string, m *meta) *arrays.Array {
	made := &objects{keys: m.keys, shards: m.shards}
	made.keys.texts = m.Texts != nil
	made.Array = n.NewArray(uri, path, &m.Meta, made)
	return made.Array
}

// keys say how the coordinates of a chunk become the name of its object.
type keys struct {
	prefix, sep string
	texts       bool // the last coordinate is of the bytes of strings
}

// name returns the name of an object, relative to the array.
func (k keys) name(at []int64) string {
	if k.texts {
		at = at[:len(at)-1]
	}
	var name strings.Builder
	name.WriteString(k.prefix)
	for i, coordinate := range at {
		if i > 0 || k.prefix != "" {
			name.WriteString(k.sep)
		}
		name.WriteString(strconv.FormatInt(coordinate, 10))
	}
	if name.Len() == 0 {
		return "0"
	}
	return name.String()
}

// Object implements arrays.Objects.
func (a *objects) Object(at []int64) string {
	if a.Shards != nil {
		at = slices.Clone(at)
		for d, side := range a.Shards {
			at[d] /= side / a.Chunks[d]
		}
	}
	return source.Join(a.URI, a.keys.name(at))
}

// Name implements arrays.Objects.
func (a *objects) Name(at []int64) string { return a.keys.name(at) }

// shardLevel is one level of sharding: an object, or a chunk of an outer shard, that holds a grid of chunks.
type shardLevel struct {
	inner   []int64 // cells of a chunk of its grid
	grid    []int64 // chunks along each dimension
	atStart bool    // the index comes first
	big     bool    // its numbers are big-endian
	sum     bool    // it ends with a CRC-32C
}

// indexCost returns the bytes of an index in the cache, without the overhead of the cache.
func indexCost(key int64, entries int) int64 { return key + indexEntry*int64(entries) + 128 }

// IndexBytes implements arrays.Objects.
func (a *objects) IndexBytes() (kept, read int64, err error) {
	for i := range a.shards {
		size, entries, err := a.shards[i].indexSize()
		if err != nil {
			return 0, 0, err
		}
		// The name of an object has at most 21 bytes for each dimension, as the number of a chunk in a shard has.
		key := int64(len(a.URI)) + 21*int64(len(a.Shape)+len(a.shards)+1)
		kept += indexCost(key, entries) + lru.Overhead
		read += 2 * int64(size) // the index as bytes and as ranges
	}
	return kept, read, nil
}

// Check implements arrays.Objects.
func (a *objects) Check(v *arrays.Verifier, at, cell []int64) error {
	return a.check(v, source.Join(a.URI, a.keys.name(at)), nil, 0, cell)
}

// check checks the chunks of a shard that begins at a cell: an object or, of shards in shards, the chunk of the outer
// ones that inside has the numbers of, with size bytes.
func (a *objects) check(v *arrays.Verifier, uri string, inside []int64, size int64, cell []int64) error {
	level := len(inside)
	shard := &a.shards[level]
	index, err := a.index(v.Context(), uri, inside)
	if err == nil {
		if index.absent {
			return nil
		}
		if level == 0 {
			size = index.object.Size
		}
		err = overlap(index.at, size)
	}
	if err != nil {
		cells := a.Shards
		if level > 0 {
			cells = a.shards[level-1].inner
		}
		part := "shard of chunk " + a.keys.name(a.ChunkAt(cell))
		return v.Lost(cell, cells, fault.WithFile(fault.WithPart(err, part, fault.NoOffset), uri))
	}
	for i, span := range index.at {
		inner, inArray := shard.cell(cell, i, a.Shape)
		if span.Off < 0 || !inArray {
			continue
		}
		if level < len(a.shards)-1 {
			err = a.check(v, uri, append(slices.Clip(inside), int64(i)), span.Len, inner)
		} else {
			err = v.Chunk(inner, chunk.Stored{URI: uri, Size: index.object.Size, ETag: index.object.ETag, At: span})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// overlap returns an error if ranges of a shard overlap so much that they cannot lie side by side.
func overlap(list []chunk.Range, size int64) error {
	sum := int64(0)
	for i, span := range list {
		if span.Off < 0 {
			continue
		}
		// A small file could otherwise name one range millions of times, and each of them would be decoded.
		if sum += span.Len; sum > size {
			return fault.New(fault.Corrupt, shardPart,
				"the first %d of its %d chunks have more bytes than the shard, which has %d", i+1, len(list), size)
		}
	}
	return nil
}

// cell returns the first cell of chunk i of a shard that begins at a cell, and reports whether it lies in the array.
func (s *shardLevel) cell(first []int64, i int, shape []int64) (cell []int64, inside bool) {
	cell, inside = make([]int64, len(first)), true
	for d := len(first) - 1; d >= 0; d-- {
		cell[d] = first[d] + int64(i)%s.grid[d]*s.inner[d]
		i /= int(s.grid[d])
		inside = inside && cell[d] < shape[d]
	}
	return cell, inside
}
