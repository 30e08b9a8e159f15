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

// TileCache shares decoded chunks among the windows of a pool, so that each chunk is decoded once. It
// evicts the chunks that were used longest ago, which belong to pools that are over. It is safe for
// concurrent use.
type TileCache struct {
	// mu guards all fields, and key, holders and place of every tile. It is never held while a chunk
	// is decoded or waited for: Ready serves that.
	mu    sync.Mutex
	Bound int64             // most bytes of chunks, in use or not
	Held  int64             // bytes of all tiles that occupy memory; at most Bound
	By    map[TileKey]*tile // all tiles that have not failed
	// Evicted counts the tiles that made room for others, and those for which there was no room.
	Evicted int64
	// Used holds the *tile that no reader holds, the last used one first. Only these can be evicted,
	// because a reader may still copy from the others.
	Used list.List

	counts bool // tiles have no memory
}

// TileKey names a chunk of an asset, or of the asset's mask.
type TileKey struct {
	Set, Column int   // which dataset, and which column of its table
	Part        int   // of a stack; 0 for other assets
	Row         int64 // of the dataset
	Level       int   // 0 for the raster itself, else 1 more than the number of the overview
	Chunk       int   // in the index of the asset or of its mask
	Mask        bool  // the chunk is one of the mask
}

// tile is a chunk that is decoded or being decoded. The reader that decodes it writes Samples and
// Failed before it closes Ready; other readers look at them only after Ready is closed.
type tile struct {
	key     TileKey
	bytes   int64 // of Samples
	Samples []byte
	Ready   chan struct{} // closed once the chunk is decoded or has failed
	Failed  bool
	holders int           // readers between Get and Put
	place   *list.Element // in TileCache.Used; nil while a reader holds the tile
}

// NewTileCache returns an empty cache for at most bound bytes of decoded chunks.
func NewTileCache(bound int64) *TileCache { return &TileCache{Bound: bound, By: map[TileKey]*tile{}} }

// NewTileCounter returns an empty cache whose tiles have no memory, for dry runs: it only counts them.
func NewTileCounter(bound int64) *TileCache {
	return &TileCache{Bound: bound, By: map[TileKey]*tile{}, counts: true}
}

// Get returns the tile of a chunk of n decoded bytes, and holds it until the caller calls Put. If mine
// is true, the tile is new: the caller must decode the chunk and call Finish. Otherwise the chunk is
// decoded, or another reader decodes it. Get returns nil if the tiles in use leave no room.
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
		c.Evicted++
		last := c.Used.Back()
		if last == nil {
			return nil, false
		}
		old := last.Value.(*tile)
		c.drop(old)
		if len(old.Samples) == n { // a larger buffer would hold bytes that Held does not count
			memory = old.Samples
		}
	}
	if memory == nil && !c.counts {
		memory = cast.Aligned(n + chunk.Spare)[:n]
	}
	t = &tile{key: key, bytes: int64(n), Samples: memory, Ready: make(chan struct{}), holders: 1}
	c.By[key] = t
	c.Held += int64(n)
	return t, true
}

// drop evicts a tile that no reader holds. The caller must hold mu.
func (c *TileCache) drop(t *tile) {
	if t.place != nil {
		c.Used.Remove(t.place)
		t.place = nil
	}
	if c.By[t.key] == t {
		delete(c.By, t.key)
	}
	c.Held -= t.bytes
}

// Finish wakes the readers that wait for t. failed says that the caller could not decode the chunk. The
// reader that got t with mine calls it once, before Put.
func (c *TileCache) Finish(t *tile, failed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.Failed = failed; failed {
		// The next reader of the chunk must decode it anew, because the failure may be one of this
		// reader alone, such as a cancelled context.
		delete(c.By, t.key)
	}
	close(t.Ready) // after Failed is set, so that readers that wake see it
}

// Put ends a Get: the caller uses the tile no more, and the cache may evict it.
func (c *TileCache) Put(t *tile) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.holders--; t.holders > 0 {
		return
	}
	if t.Failed { // By lost it in Finish, so that only its memory is left to give back
		c.Held -= t.bytes
		return
	}
	t.place = c.Used.PushFront(t)
}

// Trim evicts all tiles that no reader holds.
func (c *TileCache) Trim() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.Used.Len() > 0 {
		c.drop(c.Used.Back().Value.(*tile))
	}
}

// Shared says where a reader shares decoded chunks. The zero value shares none.
type Shared struct {
	Tiles *TileCache
	Key   TileKey // names the asset; the reader sets Chunk and Mask
}

// want is a chunk that a window needs, and its tile.
type want struct {
	t    *tile // nil: the cache has no room, so this reader decodes the chunk and does not share it
	i    int   // the chunk's number
	mine bool  // this reader decodes the chunk for all
	open bool  // mine, and Finish is still to be called
}

// fromTiles puts the chunks of the reader's plan into the sink, sharing them through the tile cache.
// First it decodes the chunks that are its own, then it takes those that other readers decode. In the
// other order two readers could each wait for a chunk of the other, forever.
func (r *Reader) fromTiles(ctx context.Context, f source.Reader, x *chunk.Index, box chunk.Box, to Sink) error {
	r.planned = r.planned[:0]
	for _, run := range r.plan.Runs {
		r.planned = append(r.planned, run.Chunks...)
	}
	wants, done := r.want(x, r.planned)
	defer done()
	for start := 0; start < len(wants); {
		run, end := nextRun(x, wants, start, r.gap(f))
		if len(run.Chunks) > 0 {
			if err := r.fetch(ctx, f, run); err != nil {
				return err
			}
		}
		if err := r.ownAll(x, wants[start:end], run.Off, box.Y1, to); err != nil {
			return err
		}
		start = end
	}
	return r.others(ctx, wants, x, to, func(i int) error {
		p := x.Place(i)
		return r.run(ctx, f, x, chunk.Run{Off: p.Off, Len: p.Len, Chunks: []int{i}}, box.Y1, to)
	})
}

// want gets the tiles of chunks. done puts them back, and marks those that are not decoded by then as
// failed, so that no other reader waits for them forever.
func (r *Reader) want(x *chunk.Index, chunks []int) (wants []want, done func()) {
	tileCache, key := r.Share.Tiles, r.Share.Key
	wants = r.wants[:0]
	for _, i := range chunks {
		key.Chunk = i
		t, mine := tileCache.Get(key, x.StoredBytes(i))
		wants = append(wants, want{t, i, mine, mine})
	}
	r.wants = wants
	return wants, func() {
		for _, want := range wants {
			if want.open {
				tileCache.Finish(want.t, true)
			}
			if want.t != nil {
				tileCache.Put(want.t)
			}
		}
		clear(wants) // the reader keeps the slice, which would otherwise keep evicted tiles alive
	}
}

// others waits for the chunks that other readers decode, and puts them into the sink. If one failed, it
// calls again to read the chunk here, because the other reader may have failed for a reason of its own,
// such as a cancelled context.
func (r *Reader) others(
	ctx context.Context, wants []want, x *chunk.Index, to Sink, again func(i int) error,
) error {
	for _, want := range wants {
		if want.t == nil || want.mine {
			continue
		}
		select {
		case <-want.t.Ready:
		default:
			r.Slot.Rest() // the other reader may need the turn
			select {
			case <-want.t.Ready:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		r.Clock.Lap(resources.StageWait)
		if !want.t.Failed {
			to.Put(x, want.i, want.t.Samples)
			r.Clock.Lap(resources.StageScatter)
			continue
		}
		if err := again(want.i); err != nil {
			return err
		}
	}
	return nil
}

// ownAll calls own for each chunk of a run.
func (r *Reader) ownAll(x *chunk.Index, wants []want, off int64, y1 int, to Sink) error {
	// The turn ends here, before others waits: a reader that waits with a turn would keep the reader
	// that it waits for from decoding.
	defer r.decoding()()
	for i := range wants {
		if err := r.own(x, &wants[i], off, y1, to); err != nil {
			return err
		}
	}
	return nil
}

// own decodes a chunk, unless another reader does, and puts it into the sink. The chunk's bytes lie in
// r.Stored, which begins at offset off of the file. y1 is the row of the image where the window ends.
func (r *Reader) own(x *chunk.Index, w *want, off int64, y1 int, to Sink) error {
	if w.t != nil && !w.mine {
		return nil
	}
	stored := r.stored(x.Place(w.i), off)
	if w.t == nil {
		return r.chunk(stored, x, w.i, y1, to)
	}
	// All rows are decoded, since other windows may need those below y1.
	if err := r.decode(w.t.Samples, stored, x, w.i, x.Box(w.i).Y1); err != nil {
		return err
	}
	r.Share.Tiles.Finish(w.t, false)
	w.open = false
	to.Put(x, w.i, w.t.Samples)
	r.Clock.Lap(resources.StageScatter)
	return nil
}

// nextRun returns the next run of chunks that this reader decodes, from wants[from] on, and the number
// of the first want behind it. Gaps in a run have at most gap bytes, and a run of several chunks at most
// MaxRun. The plan's runs cannot be used as they are, because they hold chunks of other readers, too.
func nextRun(x *chunk.Index, wants []want, from int, gap int64) (run chunk.Run, end int) {
	join := chunk.Join{MaxGap: gap, MaxLen: MaxRun}
	for end = from; end < len(wants); end++ {
		want := wants[end]
		if want.t != nil && !want.mine {
			continue
		}
		place := x.Place(want.i)
		if len(run.Chunks) == 0 {
			join.Span = place
		} else if !join.Take(place) {
			break
		}
		run.Chunks = append(run.Chunks, want.i)
	}
	run.Off, run.Len = join.Span.Off, join.Span.Len
	return run, end
}
