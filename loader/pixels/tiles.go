package pixels

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/heaps"
	"github.com/chaski-eo/chaski/internal/procs"
)

// TileCache shares decoded chunks among windows, so each chunk is decoded once. There are two kinds of windows.
// Windows of a pool keep all chunks, and evict the chunks that were used longest ago, which belong to pools that are
// over. All others announce the chunks of the windows that come next (Plan): a chunk is shared only if another of
// these windows needs it, and makes room for one that is needed earlier. A cache with much memory
// (NewKeptTiles) also keeps chunks that no announced window needs, as long as there is room. It is safe for concurrent
// use.
type TileCache struct {
	// mu guards all fields, and key, holders and place of every tile. It is never held while a chunk
	// is decoded or waited for: Ready serves that.
	mu    sync.Mutex
	Bound int64             // most bytes of chunks, in use or not
	Held  int64             // bytes of all tiles that occupy memory; at most Bound
	By    map[TileKey]*tile // all tiles that have not failed
	// Evicted counts the tiles that made room for others, and those for which there was no room.
	Evicted int64
	// Idle are the tiles that no reader holds. Only these can be evicted, because a reader may still copy from the
	// others.
	Idle heaps.Heap[*tile]
	uses int64 // calls of Put
	// misses counts the chunks that were not there when a window needed them.
	misses int64

	// Planned has for each chunk the windows that come next and need it, in their order.
	Planned map[TileKey][]plannedUse

	counts    bool           // tiles have no memory
	reuses    bool           // a tile takes the memory of one that no window needs, even if there is room
	budget    *budget.Budget // pays for tiles beyond floor; nil for none
	leave     func()         // ends the membership in the budget
	floor     int64          // bytes of tiles that somebody else has charged
	allowance int64          // bytes that are charged to the budget, with floor
	keeper    *tileKeeper    // nil unless tiles stay that no window needs
}

// tileKeeper is the part of a cache that keeps tiles.
type tileKeeper struct {
	slabs     slabs        // the memory of all tiles
	least     int64        // bytes of slabs that stay whatever other programs need
	most      int64        // bytes of slabs that other programs leave, between least and TileCache.Bound
	reserve   int64        // bytes of the machine that stay free
	available func() int64 // returns how many bytes of the machine are free
	due       atomic.Int64 // when available is called again, in ns since start
	start     time.Time
}

const (
	// keptTile is the size of the smallest tile that stays: what the cache knows of smaller ones would take memory that
	// nobody counts.
	keptTile = 4 << 10
	// keptReserve is the part of the machine's memory that tiles leave free: 1/keptReserve.
	keptReserve = 16
	// keptLook is the time between two looks at the free memory; a look takes some 100 µs.
	keptLook = time.Second
	// keptGiven is how much of a cache is given back at once: 1/keptGiven, at least keptGivenBytes.
	keptGiven      = 4
	keptGivenBytes = 64 << 20
	// allRows stands for all rows of a chunk.
	allRows = math.MaxInt32
)

// TileKey names a chunk of an asset, or of the asset's mask.
type TileKey struct {
	Set, Column int   // which dataset, and which column of its table
	Part        int   // of a stack; 0 for other assets
	Row         int64 // of the dataset
	Level       int   // 0 for the raster itself, else 1 more than the number of the overview
	Chunk       int   // in the index of the asset or of its mask
	// Source is of a source of a virtual raster, else 0: catalog.Asset.Source. The chunk is one of the source then, and
	// all other numbers are 0.
	Source uint64
	Mask   bool // the chunk is one of the mask
}

// tile is a chunk that is decoded or being decoded. The reader that decodes it writes Samples and
// Failed before it closes Ready; other readers look at them only after Ready is closed.
type tile struct {
	key     TileKey
	version uint64 // of the file: see Get
	rows    int    // the first ones of the chunk, which are decoded
	bytes   int64  // of Samples
	Samples []byte
	Ready   chan struct{} // closed once the chunk is decoded or has failed
	Failed  bool
	holders int   // readers between Get and Put
	place   int   // in TileCache.Idle, or heaps.Outside
	next    int64 // while it is idle: the order of the first planned window that needs it, or unplanned
	used    int64 // TileCache.uses at the last Put; 0 if no window comes back to it
	slab    *slab // that Samples lie in; nil if they lie in Go's heap
}

// Before implements heaps.Item. The first idle tile makes room for others first. That is the one that was used longest
// ago of those that no planned window needs, or else the one that is needed last.
func (t *tile) Before(o *tile) bool { return t.next > o.next || t.next == o.next && t.used < o.used }

// Place implements heaps.Item.
func (t *tile) Place() *int { return &t.place }

// NewTileCache returns an empty cache for at most bound bytes of decoded chunks, which the caller has charged.
func NewTileCache(bound int64) *TileCache {
	return &TileCache{Bound: bound, By: map[TileKey]*tile{}, floor: bound, allowance: bound, leave: func() {}}
}

// NewPlannedTiles returns an empty cache for windows that announce their chunks. It charges at most bound bytes to
// b as long as nobody waits for them. The caller must call Close.
func NewPlannedTiles(bound int64, b *budget.Budget) *TileCache {
	return plannedTiles(bound, b, nil)
}

// NewKeptTiles is NewPlannedTiles for a cache that also keeps chunks that no planned window needs. It gives back what
// others need: whoever waits for the budget, and other programs of the machine, for which least bytes stay.
func NewKeptTiles(bound, least int64, b *budget.Budget) *TileCache {
	return plannedTiles(bound, b, &tileKeeper{slabs: slabs{open: map[int][]*slab{}}, least: least, most: bound,
		reserve: procs.Memory() / keptReserve, available: procs.Available, start: time.Now()})
}

func plannedTiles(bound int64, b *budget.Budget, keep *tileKeeper) *TileCache {
	c := NewTileCache(bound)
	c.Planned, c.budget, c.floor, c.allowance, c.keeper = map[TileKey][]plannedUse{}, b, 0, 0, keep
	c.leave = b.Join(c)
	return c
}

// Keeps reports whether tiles stay that no planned window needs.
func (c *TileCache) Keeps() bool { return c.keeper != nil }

// NewTileCounter returns an empty cache whose tiles have no memory, for dry runs: it only counts them.
func NewTileCounter(bound int64) *TileCache {
	c := NewTileCache(bound)
	c.counts = true
	return c
}

// plannedUse is the planned use of a chunk by a window.
type plannedUse struct {
	Order int64 // Shared.Order
	rows  int   // the first ones of the chunk that the window needs
}

// Need is a chunk that a window needs.
type Need struct {
	Key        TileKey
	Rows       int  // the first ones of the chunk
	Bytes      int  // of the chunk, decoded
	Compressed bool // it is stored in less
}

// Plan announces that a window needs chunks: order is from 1 on, and later windows have higher ones. The caller must
// call Forget.
func (c *TileCache) Plan(order int64, needs []Need) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, need := range needs {
		uses := c.Planned[need.Key]
		place, _ := findUse(uses, order+1) // mostly the end
		c.Planned[need.Key] = slices.Insert(uses, place, plannedUse{order, need.Rows})
		c.reorder(need.Key)
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
	place, found := findUse(uses, order)
	switch {
	case !found:
	case len(uses) == 1:
		delete(c.Planned, key)
	default:
		c.Planned[key] = slices.Delete(uses, place, place+1)
	}
	c.reorder(key)
}

// findUse returns the place of the use by the window of an order in uses, which are sorted by it.
func findUse(uses []plannedUse, order int64) (place int, found bool) {
	return slices.BinarySearchFunc(uses, order, func(u plannedUse, at int64) int { return cmp.Compare(u.Order, at) })
}

// reorder puts the tile of a chunk in the place that its planned windows give it. It needs the lock.
func (c *TileCache) reorder(key TileKey) {
	if t := c.By[key]; t != nil {
		if next := c.next(key); t.place != heaps.Outside && t.next != next {
			t.next = next
			c.Idle.Fix(t)
		}
	}
}

// unplanned stands for the order of a window that does not come.
const unplanned = math.MaxInt64

// next returns the order of the first planned window that needs a chunk. It needs the lock.
func (c *TileCache) next(key TileKey) int64 {
	if uses := c.Planned[key]; len(uses) > 0 {
		return uses[0].Order
	}
	return unplanned
}

// Get returns the tile of a chunk of n decoded bytes, and holds it until the caller calls Put. If decode
// is true, the tile is new: the caller must decode the chunk and call Finish. Otherwise the chunk is
// decoded, or another reader decodes it. Get returns nil if the tiles in use leave no room, or if this is the only
// window that needs the chunk and the cache does not keep it. version is of the file: a tile of another version makes
// room, or stays for the readers that hold it. order is the place of the window in the run, 0 for one of a pool, and
// rows how many of the first rows of the chunk it needs.
func (c *TileCache) Get(key TileKey, version uint64, n int, order int64, rows int) (t *tile, decode bool) {
	c.look()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(order, key)
	defer func() {
		if t == nil || decode {
			c.misses++
		}
	}()
	var memory []byte
	if t = c.By[key]; t != nil {
		switch {
		case t.version == version && t.rows >= rows:
			t.holders++
			c.Idle.Remove(t)
			return t, false
		case t.place == heaps.Outside: // others copy from it
			return nil, false
		case c.stays(key):
			rows = allRows // windows come back to it: it is decoded for the last time
		}
		if c.keeper == nil {
			memory = t.Samples
		}
		c.drop(t)
	}
	next := int64(0) // a chunk of a pool evicts any other
	if order > 0 {
		if next = c.next(key); next == unplanned && (!c.stays(key) || n < keptTile) {
			return nil, false
		}
		for _, use := range c.Planned[key] {
			rows = max(rows, use.rows)
		}
	}
	if old := c.spare(n); old != nil {
		memory = old.Samples
		c.drop(old)
	}
	t = &tile{key: key, version: version, rows: rows, bytes: int64(n), Ready: make(chan struct{}), holders: 1,
		place: heaps.Outside}
	for !c.room(t) {
		c.Evicted++
		old := c.last(next)
		if old == nil {
			return nil, false
		}
		// A larger buffer would hold bytes that Held does not count.
		if c.keeper == nil && len(old.Samples) == n {
			memory = old.Samples
		}
		c.drop(old)
	}
	switch {
	case t.Samples != nil || c.counts:
	case memory != nil:
		t.Samples = memory
	default:
		t.Samples = cast.Aligned(n + chunk.Spare)[:n]
	}
	c.By[key] = t
	c.Held += int64(n)
	return t, true
}

// Misses returns how many chunks were not there when a window needed them.
func (c *TileCache) Misses() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.misses
}

// stays reports whether a tile stays that no planned window needs. Sources of virtual rasters are not announced, so
// their tiles stay as long as those that are announced leave room.
func (c *TileCache) stays(key TileKey) bool { return c.keeper != nil || key.Source != 0 && !c.reuses }

// spare returns a tile of n bytes that no window needs and whose memory another may take, or nil. It needs the lock.
func (c *TileCache) spare(n int) *tile {
	if !c.reuses {
		return nil
	}
	for _, t := range c.Idle {
		if t.next == unplanned && int(t.bytes) == n {
			return t
		}
	}
	return nil
}

// room reports whether there is room for one more tile, and charges it. In a cache that keeps tiles it gives the tile
// its memory. It needs the lock.
func (c *TileCache) room(t *tile) bool {
	if c.keeper == nil {
		return c.Held+t.bytes <= c.Bound && c.charge(c.Held+t.bytes)
	}
	all, n := &c.keeper.slabs, slabBytes(int(t.bytes))
	if all.put(t) {
		return true
	}
	if all.bytes+n > c.keeper.most {
		all.freeEmpty(c.keeper.most - n)
	}
	return all.bytes+n <= c.keeper.most && c.charge(all.bytes+n) && all.add(int(t.bytes)) && all.put(t)
}

// charge charges what is not charged yet of n bytes, if it is free. It needs the lock.
func (c *TileCache) charge(n int64) bool {
	due := n - c.allowance
	if due > 0 && !c.budget.TryAcquire(due) {
		return false
	}
	c.allowance += max(due, 0)
	return true
}

// look gives memory back that other programs of the machine need. Most calls return at once.
func (c *TileCache) look() {
	k := c.keeper
	if k == nil {
		return
	}
	now := int64(time.Since(k.start))
	due := k.due.Load()
	if now < due || !k.due.CompareAndSwap(due, now+int64(keptLook)) {
		return
	}
	free := min(k.available()-k.reserve, c.Bound)
	c.mu.Lock()
	k.most = min(c.Bound, max(k.slabs.bytes+free, k.least))
	over := int64(0)
	if k.slabs.bytes > k.most {
		over = c.release(k.most)
	}
	c.mu.Unlock()
	c.budget.Release(over)
}

// last returns the tile to evict for one that a window of order next needs, nil if all are needed earlier. It needs the
// lock.
func (c *TileCache) last(next int64) *tile {
	if len(c.Idle) == 0 || c.Idle[0].next <= next && c.Idle[0].next != unplanned {
		return nil
	}
	return c.Idle[0]
}

// drop evicts a tile that no reader holds. The caller must hold mu.
func (c *TileCache) drop(t *tile) {
	c.Idle.Remove(t)
	if c.By[t.key] == t {
		delete(c.By, t.key)
	}
	c.lose(t)
}

// lose counts a tile off, and makes its place in a slab free. It needs the lock.
func (c *TileCache) lose(t *tile) {
	c.Held -= t.bytes
	if t.slab != nil {
		c.keeper.slabs.remove(t)
	}
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
	// It is closed after Failed is set, so readers that wake see it.
	close(t.Ready)
}

// Put ends a Get: the caller uses the tile no more, and the cache may evict it.
func (c *TileCache) Put(t *tile) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.holders--; t.holders > 0 {
		return
	}
	// Finish took it out of By: only its memory is left to give back.
	if t.Failed {
		c.lose(t)
		return
	}
	c.uses++
	t.next = c.next(t.key)
	t.used = c.uses
	if c.Planned != nil && t.next == unplanned && !c.stays(t.key) {
		t.used = 0 // its memory is for the next tile
		if c.reuses {
			delete(c.By, t.key) // what a sample decodes does not depend on the one before
		}
	}
	c.Idle.Add(t)
}

// bytesTaken returns the bytes of memory that tiles take. It needs the lock.
func (c *TileCache) bytesTaken() int64 {
	if c.keeper != nil {
		return c.keeper.slabs.bytes
	}
	return c.Held
}

// release evicts tiles that no reader holds until all take at most bound bytes. It returns how many bytes the caller
// must give back to the budget, without the lock, because the budget calls Freed. It needs the lock.
func (c *TileCache) release(bound int64) (due int64) {
	if c.keeper != nil {
		c.keeper.slabs.freeEmpty(bound)
	}
	for len(c.Idle) > 0 && c.bytesTaken() > bound {
		first := c.Idle[0]
		owner := first.slab
		if owner == nil {
			c.drop(first)
			continue
		}
		for _, t := range owner.tiles {
			if t != nil && t.place != heaps.Outside {
				c.drop(t)
			}
		}
		if owner.used == 0 {
			c.keeper.slabs.free(owner)
		}
	}
	due = c.allowance - max(c.bytesTaken(), c.floor)
	c.allowance -= due
	return due
}

// Trim evicts all tiles that no reader holds.
func (c *TileCache) Trim() {
	c.mu.Lock()
	due := c.release(0)
	c.mu.Unlock()
	c.budget.Release(due)
}

// Reclaim implements budget.Holder.
func (c *TileCache) Reclaim(budget.Level) (more bool) {
	if c.keeper == nil {
		c.Trim()
		return false
	}
	c.mu.Lock()
	taken := c.bytesTaken()
	due := c.release(max(taken-max(taken/keptGiven, keptGivenBytes), 0))
	more = len(c.Idle) > 0
	c.mu.Unlock()
	c.budget.Release(due)
	return more
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

// viewBytes bounds the chunks that a reader keeps for other views of a sample: 4 chunks of 1024 by 1024 pixels in 4
// bands of 2 bytes. Chunks beyond are decoded for each view.
const viewBytes = 32 << 20

// NewViewTiles returns an empty cache for the views of one sample after another, which announce their chunks. Tiles
// that no view needs any more give their memory to the next. With counts tiles have no memory, for dry runs.
func NewViewTiles(counts bool) *TileCache {
	c := NewTileCache(viewBytes)
	c.Planned, c.reuses, c.counts = map[TileKey][]plannedUse{}, true, counts
	return c
}
