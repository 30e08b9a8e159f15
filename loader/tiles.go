package loader

import (
	"container/list"
	"context"
	"sync"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/source"
)

// tiles keeps decoded chunks within a bound, for windows that need the same ones: those of a pool of
// visits. The least recently used go first, so those of a pool that is over. It is safe for concurrent use.
type tiles struct {
	mu    sync.Mutex
	bound int64
	held  int64
	by    map[tileKey]*tile
	used  list.List // of *tile, the last used in front; without those that somebody holds
}

// tileKey names a chunk of an asset of a dataset, or of the asset's mask.
type tileKey struct {
	set, column int
	row         int64
	chunk       int
	mask        bool
}

// tile is a decoded chunk, or one that is being decoded.
type tile struct {
	key     tileKey
	samples []byte
	ready   chan struct{} // closed when it is decoded, or has failed
	failed  bool
	holders int
	place   *list.Element // in used, where nobody holds it
}

func newTiles(bound int64) *tiles { return &tiles{bound: bound, by: map[tileKey]*tile{}} }

// get returns a chunk that is there or being decoded, or else, with mine, one of n bytes that the caller
// has to decode and finish. It is the caller's until put. It returns nil where there is no room.
func (c *tiles) get(key tileKey, n int) (t *tile, mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t = c.by[key]; t != nil {
		if t.holders++; t.place != nil {
			c.used.Remove(t.place)
			t.place = nil
		}
		return t, false
	}
	var memory []byte
	for c.held+int64(n) > c.bound {
		last := c.used.Back()
		if last == nil {
			return nil, false
		}
		old := last.Value.(*tile)
		c.drop(old)
		if len(old.samples) == n { // what is larger would be held and not counted
			memory = old.samples
		}
	}
	if memory == nil {
		memory = cast.Aligned(n + chunk.Spare)[:n]
	}
	t = &tile{key: key, samples: memory, ready: make(chan struct{}), holders: 1}
	c.by[key] = t
	c.held += int64(n)
	return t, true
}

// drop forgets a chunk that nobody holds. It needs the lock.
func (c *tiles) drop(t *tile) {
	if t.place != nil {
		c.used.Remove(t.place)
		t.place = nil
	}
	if c.by[t.key] == t {
		delete(c.by, t.key)
	}
	c.held -= int64(len(t.samples))
}

// finish tells others that a chunk is decoded or, with failed, that it will not be.
func (c *tiles) finish(t *tile, failed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.failed = failed; failed {
		delete(c.by, t.key)
	}
	close(t.ready)
}

// put ends a get.
func (c *tiles) put(t *tile) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.holders--; t.holders > 0 {
		return
	}
	if t.failed {
		c.held -= int64(len(t.samples))
		return
	}
	t.place = c.used.PushFront(t)
}

// trim forgets what nobody holds.
func (c *tiles) trim() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.used.Len() > 0 {
		c.drop(c.used.Back().Value.(*tile))
	}
}

// shared is what a reader needs to share decoded chunks: the zero value shares none.
type shared struct {
	tiles *tiles
	key   tileKey // of the asset
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
func (r *assetReader) fromTiles(ctx context.Context, f source.Reader, x *chunk.Index, box chunk.Box, to sink) error {
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
func (r *assetReader) want(x *chunk.Index, chunks []int) (wants []want, done func()) {
	c, key := r.share.tiles, r.share.key
	wants = r.wants[:0]
	for _, i := range chunks {
		key.chunk = i
		t, mine := c.get(key, x.StoredBytes(i))
		wants = append(wants, want{t, i, mine, mine})
	}
	r.wants = wants
	return wants, func() {
		for _, w := range wants {
			if w.open {
				c.finish(w.t, true)
			}
			if w.t != nil {
				c.put(w.t)
			}
		}
		clear(wants) // the reader keeps the slice, and would keep what is in it alive
	}
}

// others hands on the chunks that others decode. Whoever had one may have failed for reasons of its own: then
// again reads it.
func (r *assetReader) others(ctx context.Context, wants []want, x *chunk.Index, to sink, again func(i int) error) error {
	for _, w := range wants {
		if w.t == nil || w.mine {
			continue
		}
		select {
		case <-w.t.ready:
		case <-ctx.Done():
			return ctx.Err()
		}
		r.clock.Lap(StageWait)
		if !w.t.failed {
			to.put(x, w.i, w.t.samples)
			r.clock.Lap(StageScatter)
			continue
		}
		if err := again(w.i); err != nil {
			return err
		}
	}
	return nil
}

// ownAll is own for the chunks of a run.
func (r *assetReader) ownAll(x *chunk.Index, wants []want, off int64, y1 int, to sink) error {
	defer r.turns.take()()
	for i := range wants {
		if err := r.own(x, &wants[i], off, y1, to); err != nil {
			return err
		}
	}
	return nil
}

// own decodes a chunk that is not somebody else's, from the bytes in stored, which begin at off in the file.
func (r *assetReader) own(x *chunk.Index, w *want, off int64, y1 int, to sink) error {
	if w.t != nil && !w.mine {
		return nil
	}
	p := x.Place(w.i)
	stored := r.stored[p.Off-off:][:p.Len]
	if w.t == nil {
		return r.chunk(stored, x, w.i, y1, to)
	}
	if err := r.decode(w.t.samples, stored, x, w.i, x.Box(w.i).Y1); err != nil {
		return err
	}
	r.share.tiles.finish(w.t, false)
	w.open = false
	to.put(x, w.i, w.t.samples)
	r.clock.Lap(StageScatter)
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
		if p.Off < run.Off || p.Off-(run.Off+run.Len) > gap || last-run.Off > maxRun {
			return run, end
		}
		run.Len = last - run.Off
		run.Chunks = append(run.Chunks, w.i)
	}
	return run, end
}
