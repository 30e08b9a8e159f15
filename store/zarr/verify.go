package zarr

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/crash"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store"
)

// Checked counts what Verify checked. Chunks past the edge of the array, which the last shards may hold, do not count.
type Checked struct {
	Chunks int64 // decoded
	Absent int64 // chunks that were not written
	Bytes  int64 // decoded
	Bad    int64 // chunks and indexes of shards that cannot be read
}

// maxObjects bounds the chunks or shards that Verify asks for: 2^26 requests of 20 µs of a local disk take 20 minutes.
const maxObjects = 1 << 26

// inFlight bounds the memory of all workers of Verify: what four chunks of the default bound decode to.
const inFlight = 1 << 30

// Verify reads and decodes every chunk of the array, with every checksum that its codecs and the indexes of its shards
// have, by at most the given number of workers. It does not end at a fault: it returns the first one in the order of
// the chunks, and counts the others. An error without a kind, such as one of the network, ends it.
func (a *Array) Verify(ctx context.Context, workers int) (Checked, error) {
	if err := a.ready(); err != nil {
		return Checked{}, err
	}
	grid := gridOf(a.Shape, a.objectSides())
	if slices.Contains(grid, 0) {
		return Checked{}, nil
	}
	if cells(grid, maxObjects) < 0 {
		return Checked{}, fault.WithFile(fault.New(fault.Limit, "array",
			"a grid of %v chunks or shards: at most %d can be checked", grid, maxObjects), a.URI)
	}
	// An index that cannot be read is one fault, not one of each chunk.
	if err := prepare(ctx, []*Array{a}); err != nil {
		return Checked{}, err
	}
	verifier := &arrayVerifier{a: a}
	// A worker holds the stored bytes of a chunk, at most about two times the decoded ones, and the bytes between
	// codecs, at most two times as well: five times with the decoded ones.
	need := 5*int64(a.bytes) + 64<<10
	for i := range a.shards {
		size, _, err := a.shards[i].indexSize()
		if err != nil {
			return Checked{}, fault.WithFile(err, a.URI)
		}
		need += 2 * int64(size) // the index as bytes and as ranges
	}
	workers = int(max(1, min(int64(workers), inFlight/need)))
	verifier.readers = make(chan *Reader, workers)
	for range workers {
		verifier.readers <- a.NewReader()
	}
	verifier.group, verifier.ctx = errgroup.WithContext(ctx)
	verifier.group.SetLimit(workers)
	stopped := eachIn(Box{make([]int64, len(grid)), grid}, func(at []int64) error {
		object := slices.Clone(at)
		verifier.group.Go(crash.Guard(func() error { return verifier.object(object) }))
		return verifier.ctx.Err()
	})
	// The error of the group comes first, because the first fault is why the context is done.
	if err := cmp.Or(verifier.group.Wait(), stopped); err != nil {
		return verifier.c, err
	}
	verifier.c.Absent = a.chunksIn(make([]int64, len(a.Shape)), a.Shape) - verifier.touched
	return verifier.c, verifier.first
}

// arrayVerifier checks the chunks of an array.
type arrayVerifier struct {
	a       *Array
	ctx     context.Context
	group   *errgroup.Group
	readers chan *Reader // one for each worker

	mu      sync.Mutex // of the fields below
	c       Checked
	touched int64   // existing chunks, decoded or not, with the chunks of indexes that cannot be read
	first   error   // the first fault
	at      []int64 // its first cell
}

// result counts n chunks from a cell on, which were decoded to some bytes or have a fault. An error without a kind is
// returned.
func (v *arrayVerifier) result(cell []int64, n, bytes int64, err error) error {
	if err != nil && fault.KindOf(err) == 0 {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.touched += n
	if err == nil {
		v.c.Chunks += n
		v.c.Bytes += bytes
		return nil
	}
	v.c.Bad++
	if v.first == nil || slices.Compare(cell, v.at) < 0 {
		v.first, v.at = err, slices.Clone(cell)
	}
	return nil
}

// object checks an object: a chunk or a shard.
func (v *arrayVerifier) object(at []int64) error {
	array := v.a
	cell := make([]int64, len(at))
	for d, side := range array.objectSides() {
		cell[d] = at[d] * side
	}
	if array.foreign != nil {
		stored, err := array.find(v.ctx, at)
		if err == nil && stored.Absent {
			return nil
		}
		return v.chunk(cell, stored, err)
	}
	uri := source.Join(array.URI, array.keys.name(at))
	if len(array.shards) == 0 {
		return v.chunk(cell, chunk.Stored{URI: uri, Object: true}, nil)
	}
	return v.shard(uri, nil, 0, cell)
}

// shard checks the chunks of a shard that begins at a cell: an object or, of shards in shards, the chunk of the outer
// ones that inside has the numbers of, with size bytes.
func (v *arrayVerifier) shard(uri string, inside []int64, size int64, cell []int64) error {
	level := len(inside)
	array, shard := v.a, &v.a.shards[level]
	index, err := array.index(v.ctx, uri, inside)
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
		cells := array.Shards
		if level > 0 {
			cells = array.shards[level-1].inner
		}
		part := "shard of chunk " + array.keys.name(array.chunkAt(cell))
		return v.result(cell, array.chunksIn(cell, cells), 0,
			fault.WithFile(fault.WithPart(err, part, fault.NoOffset), uri))
	}
	for i, span := range index.at {
		inner, within := shard.cell(cell, i, array.Shape)
		if span.Off < 0 || !within {
			continue
		}
		if err := v.ctx.Err(); err != nil {
			return err
		}
		if level < len(array.shards)-1 {
			if err := v.shard(uri, append(slices.Clip(inside), int64(i)), span.Len, inner); err != nil {
				return err
			}
			continue
		}
		task := crash.Guard(func() error {
			place := chunk.Stored{URI: uri, Size: index.object.Size, ETag: index.object.ETag, At: span}
			return v.chunk(inner, place, array.checkStored(&place))
		})
		// The chunks of one shard go to all workers that are free, and else to this one.
		if v.group.TryGo(task) {
			continue
		}
		if err := task(); err != nil {
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

// chunkAt returns the coordinates of the chunk that begins at a cell.
func (a *Array) chunkAt(cell []int64) []int64 {
	coordinates := make([]int64, len(cell))
	for d := range coordinates {
		coordinates[d] = cell[d] / a.Chunks[d]
	}
	return coordinates
}

// chunk decodes the chunk at a place, which begins at a cell. err says that it has none.
func (v *arrayVerifier) chunk(cell []int64, p chunk.Stored, err error) error {
	reader := <-v.readers
	defer func() { v.readers <- reader }()
	off := int64(fault.NoOffset)
	if !p.Object {
		off = p.At.Off
	}
	if err == nil {
		var data []byte
		var found bool
		if data, found, err = reader.fetch(v.ctx, &p); err == nil && !found {
			return nil
		}
		if err == nil {
			err = reader.unpack(data, p.Skip)
		}
	}
	return v.result(cell, 1, int64(v.a.bytes), reader.fault(err, v.a.chunkAt(cell), off))
}

// chunksIn returns the number of chunks that a box of cells from first on meets inside of the array. It is
// math.MaxInt64 if there are more.
func (a *Array) chunksIn(first, size []int64) int64 {
	chunks := int64(1)
	for d := range first {
		side := min(size[d], a.Shape[d]-first[d])
		if side < 1 {
			return 0
		}
		if side = (side-1)/a.Chunks[d] + 1; chunks > math.MaxInt64/side {
			chunks = math.MaxInt64
		} else {
			chunks *= side
		}
	}
	return chunks
}

// check implements store.Kind.Verify of an open store: it decodes every chunk of every array. It counts each array as a
// file. Arrays of types that are not read are in the notes.
func (n *Node) check(ctx context.Context, c *store.Check, path string) error {
	c.Busy.Lock()
	defer c.Busy.Unlock()
	list, err := n.Members(ctx)
	if err != nil {
		return err
	}
	var unread error
	read := 0
	for k, member := range list {
		err := member.Err
		if fault.KindOf(err) == fault.Unsupported {
			unread = cmp.Or(unread, err)
			c.Notes = append(c.Notes, "not read: "+fault.Line(err))
			continue
		}
		if read++; read > 1 {
			c.Files++ // the first one is counted already
		}
		c.Arrays++
		if err == nil {
			err = c.Guard(member.Array.URI, func() error { return member.Array.check(ctx, c) })
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			c.Fault(int64(k), fault.WithFile(err, path))
		}
	}
	switch {
	case read == 0 && unread != nil:
		return unread
	case read == 0:
		return fault.New(fault.NotFound, "group", "it has no arrays")
	}
	return nil
}

// Verify implements store.Images: it decodes every chunk of the arrays.
func (s *Raster) Verify(ctx context.Context, c *store.Check) error {
	c.Busy.Lock()
	defer c.Busy.Unlock()
	c.Files++
	for _, m := range s.bands {
		c.Arrays++
		if err := m.a.check(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// check decodes every chunk of an array.
func (a *Array) check(ctx context.Context, c *store.Check) error {
	checked, err := a.Verify(ctx, c.Workers)
	c.Chunks += checked.Chunks
	c.Bytes += checked.Bytes
	c.AbsentChunks += checked.Absent
	if checked.Bad > 1 {
		c.Notes = append(c.Notes, fmt.Sprintf("%s: %d chunks or shards cannot be read", a.URI, checked.Bad))
	}
	return err
}
