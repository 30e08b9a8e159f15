package zarr

import (
	"context"
	"math"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/crash"
	"github.com/chaski-eo/chaski/internal/zstd"
	"github.com/chaski-eo/chaski/source"
)

// Checked counts what Verify checked. Chunks past the edge of the array, which the last shards may hold, do not count.
type Checked struct {
	Chunks int64 // decoded
	Absent int64 // chunks that were not written
	Bytes  int64 // decoded
	Bad    int64 // chunks and indexes of shards that cannot be read
	// Strays counts objects below the array that are neither chunks nor metadata; Stray is the first of them by name.
	// They are found only where the store can list.
	Strays int64
	Stray  string
}

// inFlight bounds the memory of all workers of Verify: what four chunks of the default bound decode to.
const inFlight = 1 << 30

// Verify reads and decodes every chunk of the array, with every checksum that its codecs and the indexes of its shards
// have, by at most the given number of workers. It does not end at a fault: it returns the first one in the order of
// the chunks, and counts the others. An error without a kind, such as one of the network, ends it.
func (a *Array) Verify(ctx context.Context, workers int) (Checked, error) {
	if err := a.ready(); err != nil {
		return Checked{}, err
	}
	v := &verifier{a: a, ctx: ctx}
	// A worker holds the stored bytes of a chunk, at most about two times the decoded ones, and the bytes between
	// codecs, at most two times as well: five times with the decoded ones.
	need := 5*int64(a.bytes) + 64<<10
	for i := range a.shards {
		n, _, err := a.shards[i].indexSize()
		if err != nil {
			return Checked{}, fault.WithFile(err, a.URI)
		}
		need += 2 * int64(n) // the index as bytes and as ranges
	}
	workers = int(max(1, min(int64(workers), inFlight/need)))
	v.scratch = make(chan *scratch, workers)
	for range workers {
		v.scratch <- &scratch{}
	}
	var gctx context.Context
	v.group, gctx = errgroup.WithContext(ctx)
	v.ctx = gctx
	v.group.SetLimit(workers)
	err := a.objects(gctx, func(places []int64) error {
		if err := gctx.Err(); err != nil {
			return err
		}
		v.group.Go(crash.Guard(func() error { return v.object(places) }))
		return nil
	}, v.stray)
	if fail := v.group.Wait(); fail != nil { // then err is only that the context is done
		err = fail
	}
	if err != nil {
		return v.c, err
	}
	v.c.Absent = a.chunksIn(make([]int64, len(a.Shape)), a.Shape) - v.touched
	return v.c, v.first
}

// verifier checks the chunks of an array.
type verifier struct {
	a       *Array
	ctx     context.Context
	group   *errgroup.Group
	scratch chan *scratch // one for each worker

	mu      sync.Mutex // of the fields below
	c       Checked
	touched int64   // existing chunks, decoded or not, with those of indexes that cannot be read
	first   error   // the first fault
	at      []int64 // its first cell
}

// scratch is the memory of a worker.
type scratch struct {
	dec            decoder
	stored, pixels []byte
}

// stray counts an object that is not a chunk.
func (v *verifier) stray(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.c.Strays++; v.c.Strays == 1 || name < v.c.Stray {
		v.c.Stray = name
	}
}

// result counts n chunks from a cell on, which were decoded to some bytes or have a fault. An error without a kind is
// returned.
func (v *verifier) result(cell []int64, n, bytes int64, err error) error {
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
func (v *verifier) object(at []int64) error {
	array := v.a
	outer := array.Chunks
	if array.Shards != nil {
		outer = array.Shards
	}
	cell := make([]int64, len(at))
	for d := range at {
		cell[d] = at[d] * outer[d]
	}
	uri := Join(array.URI, array.keys.name(at))
	if len(array.shards) == 0 {
		return v.chunk(cell, func(s *scratch) (_ []byte, found bool, err error) {
			s.stored, found, err = array.wholeObject(v.ctx, s.stored, uri, array.maxStored())
			return s.stored, found, err
		}, uri, fault.NoOffset)
	}
	file, err := array.open.Open(v.ctx, uri)
	if missing(err) {
		return nil
	}
	if err != nil {
		return v.result(cell, array.chunksIn(cell, array.Shards), 0, fault.WithFile(err, uri))
	}
	defer file.Close()
	return v.shard(file, uri, 0, chunk.Range{Len: file.Size()}, cell)
}

// shard checks the chunks of a shard that is a range of an object. cell is its first cell.
func (v *verifier) shard(r source.Reader, uri string, level int, at chunk.Range, cell []int64) error {
	array, shard := v.a, &v.a.shards[level]
	size := array.Shards
	if level > 0 {
		size = array.shards[level-1].inner
	}
	list, err := shard.read(v.ctx, r, at.Off, at.Len)
	if err == nil {
		err = overlap(list, at)
	}
	if err != nil {
		return v.result(cell, array.chunksIn(cell, size), 0,
			fault.WithFile(fault.WithPart(err, "shard of "+v.name(cell), fault.NoOffset), uri))
	}
	var tasks sync.WaitGroup // r is closed after them
	defer tasks.Wait()
	for i, span := range list {
		inner, inside := shard.cell(cell, i, array.Shape)
		if span.Off < 0 || !inside {
			continue
		}
		if err := v.ctx.Err(); err != nil {
			return err
		}
		if level < len(array.shards)-1 {
			if err := v.shard(r, uri, level+1, span, inner); err != nil {
				return err
			}
			continue
		}
		task := crash.Guard(func() error { return v.inner(r, uri, span, inner) })
		tasks.Add(1)
		// The chunks of one shard go to all workers that are free, and else to this one.
		if v.group.TryGo(func() error { defer tasks.Done(); return task() }) {
			continue
		}
		err := task()
		tasks.Done()
		if err != nil {
			return err
		}
	}
	return nil
}

// overlap returns an error if ranges of a shard overlap so much that they cannot lie side by side. Otherwise a small
// file could name one range millions of times, and each of them would be decoded.
func overlap(list []chunk.Range, shard chunk.Range) error {
	sum := int64(0)
	for i, span := range list {
		if span.Off < 0 {
			continue
		}
		if sum += span.Len; sum > shard.Len {
			return fault.New(fault.Corrupt, shardPart, fault.NoOffset,
				"the first %d of its %d chunks have more bytes than the shard, which has %d", i+1, len(list), shard.Len)
		}
	}
	return nil
}

// cell returns the first cell of chunk i of a shard that begins at a cell, and reports whether it lies in the array.
func (s *shard) cell(first []int64, i int, shape []int64) (cell []int64, inside bool) {
	cell, inside = make([]int64, len(first)), true
	for d := len(first) - 1; d >= 0; d-- {
		cell[d] = first[d] + int64(i)%s.grid[d]*s.inner[d]
		i /= int(s.grid[d])
		inside = inside && cell[d] < shape[d]
	}
	return cell, inside
}

// inner checks a chunk of a shard.
func (v *verifier) inner(r source.Reader, uri string, at chunk.Range, cell []int64) error {
	return v.chunk(cell, func(s *scratch) ([]byte, bool, error) {
		if limit := v.a.maxStored(); at.Len > limit {
			return nil, false, fault.New(fault.Limit, "", fault.NoOffset, "%d bytes stored, at most %d", at.Len, limit)
		}
		s.stored = slices.Grow(s.stored[:0], int(at.Len))[:at.Len]
		if at.Len == 0 {
			return s.stored, true, nil
		}
		return s.stored, true, r.ReadAt(v.ctx, s.stored, at.Off)
	}, uri, at.Off)
}

// name returns the name of the chunk that begins at a cell.
func (v *verifier) name(cell []int64) string {
	places := make([]int64, len(cell))
	for d := range places {
		places[d] = cell[d] / v.a.Chunks[d]
	}
	return "chunk " + v.a.keys.name(places)
}

// chunk decodes the chunk that begins at a cell. read returns its stored bytes, or false if it was not written.
func (v *verifier) chunk(cell []int64, read func(*scratch) ([]byte, bool, error), uri string, off int64) error {
	s := <-v.scratch
	defer func() { v.scratch <- s }()
	data, found, err := read(s)
	if err == nil && !found {
		return nil
	}
	array := v.a
	if err == nil {
		if n := storedSize(array.steps, array.bytes); n >= 0 && n != len(data) {
			err = badSize("bytes", len(data), n)
		}
	}
	if err == nil {
		s.pixels = slices.Grow(s.pixels[:0], array.bytes+zstd.Spare)[:array.bytes]
		err = s.dec.chunk(s.pixels, data, array.steps)
	}
	if err != nil {
		err = fault.WithFile(fault.WithPart(err, v.name(cell), off), uri)
	}
	return v.result(cell, 1, int64(array.bytes), err)
}

// chunksIn returns the number of chunks that a box of cells from first on meets inside of the array. It is
// math.MaxInt64 if there are more.
func (a *Array) chunksIn(first, size []int64) int64 {
	n := int64(1)
	for d := range first {
		side := min(size[d], a.Shape[d]-first[d])
		if side < 1 {
			return 0
		}
		if side = (side-1)/a.Chunks[d] + 1; n > math.MaxInt64/side {
			n = math.MaxInt64
		} else {
			n *= side
		}
	}
	return n
}
