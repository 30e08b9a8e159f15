package pixels

import (
	"container/list"
	"context"
	"sync"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/source"
)

// TileCache keeps decoded chunks within a bound, for windows that need the same ones: those of a pool of
// visits. The least recently used go first, so those of a pool that is over. It is safe for concurrent use.
type TileCache struct {
	mu    sync.Mutex
	Bound int64
	Held  int64
	By    map[TileKey]*tile
	Used  list.List // of *tile, the last used in front; without those that somebody holds
}

// TileKey names a chunk of an asset of a dataset, or of the asset's mask.
type TileKey struct {
	Set, Column int
	Row         int64
	Chunk       int
	Mask        bool
}

// tile is a decoded chunk, or one that is being decoded.
type tile struct {
	key     TileKey
	Samples []byte
	Ready   chan struct{} // closed when it is decoded, or has failed
	Failed  bool
	holders int
	place   *list.Element // in used, where nobody holds it
}

func NewTileCache(bound int64) *TileCache { return &TileCache{Bound: bound, By: map[TileKey]*tile{}} }

// Get returns a chunk that is there or being decoded, or else, with mine, one of n bytes that the caller
// has to decode and finish. It is the caller's until put. It returns nil where there is no room.
func (c *TileCache) Get(key TileKey, n int) (t *tile, mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t = c.By[key]; t != nil {
		if t.holders++; t.place != nil {
			c.Used.Remove(t.place)
			t.place = nil
		}
		return t, false
	}
	var memory []byte
	for c.Held+int64(n) > c.Bound {
		last := c.Used.Back()
		if last == nil {
			return nil, false
		}
		old := last.Value.(*tile)
		c.drop(old)
		if len(old.Samples) == n { // what is larger would be held and not counted
			memory = old.Samples
		}
	}
	if memory == nil {
		memory = cast.Aligned(n + chunk.Spare)[:n]
	}
	t = &tile{key: key, Samples: memory, Ready: make(chan struct{}), holders: 1}
	c.By[key] = t
	c.Held += int64(n)
	return t, true
}

// drop forgets a chunk that nobody holds. It needs the lock.
func (c *TileCache) drop(t *tile) {
	if t.place != nil {
		c.Used.Remove(t.place)
		t.place = nil
	}
	if c.By[t.key] == t {
		delete(c.By, t.key)
	}
	c.Held -= int64(len(t.Samples))
}

// Finish tells others that a chunk is decoded or, with failed, that it will not be.
func (c *TileCache) Finish(t *tile, failed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.Failed = failed; failed {
		delete(c.By, t.key)
	}
	close(t.Ready)
}

// Put ends a get.
func (c *TileCache) Put(t *tile) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.holders--; t.holders > 0 {
		return
	}
	if t.Failed {
		c.Held -= int64(len(t.Samples))
		return
	}
	t.place = c.Used.PushFront(t)
}

// Trim forgets what nobody holds.
func (c *TileCache) Trim() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.Used.Len() > 0 {
		c.drop(c.Used.Back().Value.(*tile))
	}
}

// Shared is what a reader needs to share decoded chunks: the zero value shares none.
type Shared struct {
	Tiles *TileCache
	Key   TileKey // of the asset
}

// want is a chunk of a window and where it comes from.
type want struct {
	t    *tile // nil: there is no room to share it
	i    int
	mine bool // to be decoded here
	open bool // mine, and not finished
}

// fromTiles hands the chunks of the reader's plan to the sink: those that are there, those that it decodes for all, and
// then those that others decode. It waits for nobody before it has finished its own.
func (r *Reader) fromTiles(ctx context.Context, f source.Reader, x *chunk.Index, box chunk.Box, to Sink) error {
	r.planned = r.planned[:0]
	for _, run := range r.plan.Runs {
		r.planned = append(r.planned, run.Chunks...)
	}
	wants, done := r.want(x, r.planned)
	defer done()
	for from := 0; from < len(wants); {
		run, end := nextRun(x, wants, from, source.Gap(f))
		if len(run.Chunks) > 0 {
			if err := r.fetch(ctx, f, run); err != nil {
				return err
			}
		}
		if err := r.ownAll(x, wants[from:end], run.Off, box.Y1, to); err != nil {
			return err
		}
		from = end
	}
	return r.others(ctx, wants, x, to, func(i int) error {
		p := x.Place(i)
		return r.run(ctx, f, x, chunk.Run{Off: p.Off, Len: p.Len, Chunks: []int{i}}, box.Y1, to)
	})
}

// want takes the shared places of chunks. done gives them back.
func (r *Reader) want(x *chunk.Index, chunks []int) (wants []want, done func()) {
	c, key := r.Share.Tiles, r.Share.Key
	wants = r.wants[:0]
	for _, i := range chunks {
		key.Chunk = i
		t, mine := c.Get(key, x.StoredBytes(i))
		wants = append(wants, want{t, i, mine, mine})
	}
	r.wants = wants
	return wants, func() {
		for _, w := range wants {
			if w.open {
				c.Finish(w.t, true)
			}
			if w.t != nil {
				c.Put(w.t)
			}
		}
		clear(wants) // the reader keeps the slice, and would keep what is in it alive
	}
}

// others hands on the chunks that others decode. Whoever had one may have failed for reasons of its own: then
// again reads it.
func (r *Reader) others(ctx context.Context, wants []want, x *chunk.Index, to Sink, again func(i int) error) error {
	for _, w := range wants {
		if w.t == nil || w.mine {
			continue
		}
		select {
		case <-w.t.Ready:
		case <-ctx.Done():
			return ctx.Err()
		}
		r.Clock.Lap(resources.StageWait)
		if !w.t.Failed {
			to.Put(x, w.i, w.t.Samples)
			r.Clock.Lap(resources.StageScatter)
			continue
		}
		if err := again(w.i); err != nil {
			return err
		}
	}
	return nil
}

// ownAll is own for the chunks of a run.
func (r *Reader) ownAll(x *chunk.Index, wants []want, off int64, y1 int, to Sink) error {
	defer r.turns.Take()()
	for i := range wants {
		if err := r.own(x, &wants[i], off, y1, to); err != nil {
			return err
		}
	}
	return nil
}

// own decodes a chunk that is not somebody else's, from the bytes in stored, which begin at off in the file.
func (r *Reader) own(x *chunk.Index, w *want, off int64, y1 int, to Sink) error {
	if w.t != nil && !w.mine {
		return nil
	}
	p := x.Place(w.i)
	stored := r.Stored[p.Off-off:][:p.Len]
	if w.t == nil {
		return r.chunk(stored, x, w.i, y1, to)
	}
	if err := r.decode(w.t.Samples, stored, x, w.i, x.Box(w.i).Y1); err != nil {
		return err
	}
	r.Share.Tiles.Finish(w.t, false)
	w.open = false
	to.Put(x, w.i, w.t.Samples)
	r.Clock.Lap(resources.StageScatter)
	return nil
}

// nextRun returns the bytes of the chunks from wants[from] on that are to be decoded here and lie near each other,
// and the first want behind them.
func nextRun(x *chunk.Index, wants []want, from int, gap int64) (run chunk.Run, end int) {
	for end = from; end < len(wants); end++ {
		w := wants[end]
		if w.t != nil && !w.mine {
			continue
		}
		p := x.Place(w.i)
		if len(run.Chunks) == 0 {
			run = chunk.Run{Off: p.Off, Len: p.Len, Chunks: []int{w.i}}
			continue
		}
		last := max(run.Off+run.Len, p.Off+p.Len)
		if p.Off < run.Off || p.Off-(run.Off+run.Len) > gap || last-run.Off > MaxRun {
			return run, end
		}
		run.Len = last - run.Off
		run.Chunks = append(run.Chunks, w.i)
	}
	return run, end
}
