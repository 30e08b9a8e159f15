package arrays

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
	if a.Strings {
		return a.verifyStrings(ctx)
	}
	grid := gridOf(a.Shape, a.objectSides())
	if slices.Contains(grid, 0) {
		return Checked{}, nil
	}
	if Cells(grid, maxObjects) < 0 {
		return Checked{}, fault.WithFile(fault.New(fault.Limit, "array",
			"a grid of %v chunks or shards: at most %d can be checked", grid, maxObjects), a.URI)
	}
	// An index that cannot be read is one fault, not one of each chunk.
	if err := prepare(ctx, []*Array{a}); err != nil {
		return Checked{}, err
	}
	verifier := &Verifier{a: a}
	// A worker holds the stored bytes of a chunk, at most about two times the decoded ones, and the bytes between
	// codecs, at most two times as well: five times with the decoded ones.
	need := 5*int64(a.bytes) + 64<<10
	if a.objects != nil {
		_, read, err := a.objects.IndexBytes()
		if err != nil {
			return Checked{}, fault.WithFile(err, a.URI)
		}
		need += read
	}
	workers = int(max(1, min(int64(workers), inFlight/need)))
	verifier.readers = make(chan *reader, workers)
	for range workers {
		verifier.readers <- &reader{a: a}
	}
	verifier.group, verifier.ctx = errgroup.WithContext(ctx)
	verifier.group.SetLimit(workers)
	stopped := eachIn(make([]int64, len(grid)), grid, func(at []int64) error {
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

// Verifier checks the chunks of an array, several at a time.
type Verifier struct {
	a       *Array
	ctx     context.Context
	group   *errgroup.Group
	readers chan *reader // one for each worker

	mu      sync.Mutex // of the fields below
	c       Checked
	touched int64   // existing chunks, decoded or not, with the chunks of indexes that cannot be read
	first   error   // the first fault
	at      []int64 // its first cell
}

// result counts n chunks from a cell on, which were decoded to some bytes or have a fault. An error without a kind is
// returned.
func (v *Verifier) result(cell []int64, n, bytes int64, err error) error {
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
func (v *Verifier) object(at []int64) error {
	array := v.a
	cell := make([]int64, len(at))
	for d, side := range array.objectSides() {
		cell[d] = at[d] * side
	}
	if array.Shards != nil {
		return array.objects.Check(v, at, cell)
	}
	stored, err := array.Find(v.ctx, at)
	if err == nil && stored.Absent {
		return nil
	}
	return v.chunk(cell, stored, err)
}

// Chunk checks the chunk at a place, which begins at a cell of a shard, at the same time as others.
func (v *Verifier) Chunk(cell []int64, place chunk.Stored) error {
	if err := v.ctx.Err(); err != nil {
		return err
	}
	task := crash.Guard(func() error { return v.chunk(cell, place, v.a.checkStored(&place)) })
	// The chunks of one shard go to all workers that are free, and else to this one.
	if v.group.TryGo(task) {
		return nil
	}
	return task()
}

// Lost notes a fault by which all chunks from a cell on, of some cells, cannot be found.
func (v *Verifier) Lost(cell, size []int64, err error) error {
	return v.result(cell, v.a.chunksIn(cell, size), 0, err)
}

// Context ends when the check does.
func (v *Verifier) Context() context.Context { return v.ctx }

// ChunkAt returns the coordinates of the chunk that begins at a cell.
func (a *Array) ChunkAt(cell []int64) []int64 {
	coordinates := make([]int64, len(cell))
	for d := range coordinates {
		coordinates[d] = cell[d] / a.Chunks[d]
	}
	return coordinates
}

// chunk decodes the chunk at a place, which begins at a cell. err says that it has none.
func (v *Verifier) chunk(cell []int64, p chunk.Stored, err error) error {
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
	return v.result(cell, 1, int64(v.a.bytes), v.a.fault(err, v.a.ChunkAt(cell), off))
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

// check implements store.Verifier of an open store: it decodes every chunk of every array. It counts each array as a
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

// verifyStrings is Verify for strings of any length, which are read as labels.
func (a *Array) verifyStrings(ctx context.Context) (done Checked, err error) {
	texts, err := a.readStrings(ctx)
	if fault.KindOf(err) != 0 {
		done.Bad = 1
	}
	if err == nil {
		done.Chunks = Cells(gridOf(a.Shape, a.Chunks), maxStrings)
		for _, text := range texts {
			done.Bytes += int64(len(text))
		}
	}
	return done, err
}
