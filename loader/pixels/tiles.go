package pixels

import (
	"container/list"
	"math"
	"slices"
	"sync"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/cast"
)

// TileCache shares decoded chunks among windows, so that each chunk is decoded once. There are two kinds of windows.
// Windows of a pool keep all chunks, and evict the chunks that were used longest ago, which belong to pools that are
// over. All others announce the chunks of the windows that come next (Plan): a chunk is shared only if another of
// these windows needs it, and makes room for one that is needed earlier. It is safe for concurrent use.
type TileCache struct {
	// mu guards all fields, and key, holders and place of every tile. It is never held while a chunk
	// is decoded or waited for: Ready serves that.
	mu    sync.Mutex
	Bound int64             // most bytes of chunks, in use or not
	Held  int64             // bytes of all tiles that occupy memory; at most Bound
	By    map[TileKey]*tile // all tiles that have not failed
	// Evicted counts the tiles that made room for others, and those for which there was no room.
	Evicted int64
	// Used holds the *tile that no reader holds, the last used one first, and behind it those that no window needs any
	// more. Only these can be evicted, because a reader may still copy from the others.
	Used list.List

	// Planned has for each chunk the windows that come next and need it.
	Planned map[TileKey][]use

	counts    bool           // tiles have no memory
	budget    *budget.Budget // pays for tiles beyond floor; nil for none
	leave     func()         // ends the membership in the budget
	floor     int64          // bytes of tiles that somebody else has charged
	allowance int64          // bytes that are charged to the budget, with floor
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
	rows    int   // the first ones of the chunk, which are decoded
	bytes   int64 // of Samples
	Samples []byte
	Ready   chan struct{} // closed once the chunk is decoded or has failed
	Failed  bool
	holders int           // readers between Get and Put
	place   *list.Element // in TileCache.Used; nil while a reader holds the tile
}

// NewTileCache returns an empty cache for at most bound bytes of decoded chunks, which the caller has charged.
func NewTileCache(bound int64) *TileCache {
	return &TileCache{Bound: bound, By: map[TileKey]*tile{}, floor: bound, allowance: bound, leave: func() {}}
}

// NewPlannedTiles returns an empty cache for windows that announce their chunks. It charges at most bound bytes to
// b as long as nobody waits for them. The caller must call Close.
func NewPlannedTiles(bound int64, b *budget.Budget) *TileCache {
	c := NewTileCache(bound)
	c.Planned, c.budget, c.floor, c.allowance = map[TileKey][]use{}, b, 0, 0
	c.leave = b.Join(c)
	return c
}

// NewTileCounter returns an empty cache whose tiles have no memory, for dry runs: it only counts them.
func NewTileCounter(bound int64) *TileCache {
	c := NewTileCache(bound)
	c.counts = true
	return c
}

// use is the planned use of a chunk by a window.
type use struct {
	order int64 // Shared.Order
	rows  int   // the first ones of the chunk that the window needs
}

// Need is a chunk that a window needs.
type Need struct {
	Key  TileKey
	Rows int // the first ones of the chunk
}

// Plan announces that a window needs chunks: order is from 1 on, and later windows have higher ones. The caller must
// call Forget.
func (c *TileCache) Plan(order int64, needs []Need) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, need := range needs {
		c.Planned[need.Key] = append(c.Planned[need.Key], use{order, need.Rows})
	}
}

// Forget takes back what is left of a Plan.
func (c *TileCache) Forget(order int64, needs []Need) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, need := range needs {
		c.forget(order, need.Key)
	}
}

// forget needs the lock.
func (c *TileCache) forget(order int64, key TileKey) {
	uses := c.Planned[key]
	place := slices.IndexFunc(uses, func(u use) bool { return u.order == order })
	switch {
	case place < 0:
	case len(uses) == 1:
		delete(c.Planned, key)
	default:
		c.Planned[key] = slices.Delete(uses, place, place+1)
	}
}

// unplanned stands for the order of a window that does not come.
const unplanned = math.MaxInt64

// next returns the order of the first planned window that needs a chunk, and how many rows all of them need. It needs
// the lock.
func (c *TileCache) next(key TileKey) (order int64, rows int) {
	order = unplanned
	for _, use := range c.Planned[key] {
		order, rows = min(order, use.order), max(rows, use.rows)
	}
	return order, rows
}

// Get returns the tile of a chunk of n decoded bytes, and holds it until the caller calls Put. If decode
// is true, the tile is new: the caller must decode the chunk and call Finish. Otherwise the chunk is
// decoded, or another reader decodes it. Get returns nil if the tiles in use leave no room, or if no
// other window needs the chunk. order is the place of the window in the run, 0 for one of a pool, and
// rows how many of the first rows of the chunk it needs.
func (c *TileCache) Get(key TileKey, n int, order int64, rows int) (t *tile, decode bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(order, key)
	var memory []byte
	if t = c.By[key]; t != nil {
		switch {
		case t.rows >= rows:
			if t.holders++; t.place != nil {
				c.Used.Remove(t.place)
				t.place = nil
			}
			return t, false
		case t.place == nil: // others copy from it
			return nil, false
		}
		memory = t.Samples
		c.drop(t)
	}
	next := int64(0) // a chunk of a pool evicts any other
	if order > 0 {
		var needed int
		if next, needed = c.next(key); next == unplanned {
			return nil, false
		}
		rows = max(rows, needed)
	}
	for !c.room(int64(n)) {
		c.Evicted++
		old := c.last(next)
		if old == nil {
			return nil, false
		}
		c.drop(old)
		// A larger buffer would hold bytes that Held does not count.
		if len(old.Samples) == n {
			memory = old.Samples
		}
	}
	if memory == nil && !c.counts {
		memory = cast.Aligned(n + chunk.Spare)[:n]
	}
	t = &tile{key: key, rows: rows, bytes: int64(n), Samples: memory, Ready: make(chan struct{}), holders: 1}
	c.By[key] = t
	c.Held += int64(n)
	return t, true
}

// room reports whether there is room for n bytes more, and charges them. It needs the lock.
func (c *TileCache) room(n int64) bool {
	if c.Held+n > c.Bound {
		return false
	}
	due := c.Held + n - c.allowance
	if due > 0 && !c.budget.TryAcquire(due) {
		return false
	}
	c.allowance += max(due, 0)
	return true
}

// candidates is how many tiles last looks at: so many that it mostly finds one that is needed late, and so few that
// this takes a microsecond, a small part of decoding a chunk.
const candidates = 32

// last returns the tile to evict for one that a window of order next needs: of those that were used longest ago the
// one that is needed last, or nil if all are needed earlier. It needs the lock.
func (c *TileCache) last(next int64) (found *tile) {
	place := c.Used.Back()
	for n := 0; n < candidates && place != nil && next != unplanned; n++ {
		t := place.Value.(*tile)
		if needed, _ := c.next(t.key); needed > next {
			found, next = t, needed
		}
		place = place.Prev()
	}
	return found
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
// reader that got t with decode calls it once, before Put.
func (c *TileCache) Finish(t *tile, failed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.Failed = failed; failed {
		// The next reader of the chunk must decode it anew, because the failure may be one of this
		// reader alone, such as a cancelled context.
		delete(c.By, t.key)
	}
	// It is closed after Failed is set, so that readers that wake see it.
	close(t.Ready)
}

// Put ends a Get: the caller uses the tile no more, and the cache may evict it.
func (c *TileCache) Put(t *tile) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.holders--; t.holders > 0 {
		return
	}
	// By lost it in Finish, so that only its memory is left to give back.
	if t.Failed {
		c.Held -= t.bytes
		return
	}
	if next, _ := c.next(t.key); c.Planned != nil && next == unplanned {
		t.place = c.Used.PushBack(t) // its memory is for the next tile
		return
	}
	t.place = c.Used.PushFront(t)
}

// Trim evicts all tiles that no reader holds.
func (c *TileCache) Trim() {
	c.mu.Lock()
	for c.Used.Len() > 0 {
		c.drop(c.Used.Back().Value.(*tile))
	}
	due := c.allowance - max(c.Held, c.floor)
	c.allowance -= due
	c.mu.Unlock()
	c.budget.Release(due) // without the lock: it calls Freed
}

// Reclaim implements budget.Holder.
func (c *TileCache) Reclaim(budget.Level) (more bool) {
	c.Trim()
	return false
}

// Freed implements budget.Holder.
func (c *TileCache) Freed() {}

// Close evicts all tiles. No reader may hold one.
func (c *TileCache) Close() {
	c.leave()
	c.Trim()
}

// Shared says where a reader shares decoded chunks. The zero value shares none.
type Shared struct {
	Tiles *TileCache
	Key   TileKey // names the asset; the reader sets Chunk and Mask
	Order int64   // of a window that announces its chunks (TileCache.Plan); 0 for one of a pool
}
