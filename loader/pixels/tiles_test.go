package pixels

import (
	"bytes"
	"context"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/heaps"
)

// slowCache says what a TileCache may do, by looking at all tiles and all plans.
type slowCache struct {
	*TileCache
	budget *budget.Budget
	used   map[TileKey]int // when a tile was put back last
	plans  []plannedNeed
	held   []heldTile
	clock  int
	fill   byte
}

// plannedNeed is a chunk that a planned window needs.
type plannedNeed struct {
	order int64
	Need
}

// heldTile is a tile between Get and Put.
type heldTile struct {
	*tile
	decodes bool // Finish has not been called
	content byte
}

// next returns the order of the first planned window that needs a chunk, and the most rows that one needs.
func (c *slowCache) next(key TileKey) (order int64, rows int) {
	order = math.MaxInt64
	for _, plan := range c.plans {
		if plan.Key == key {
			order, rows = min(order, plan.order), max(rows, plan.Rows)
		}
	}
	return order, rows
}

// isHeld reports whether a reader holds a tile.
func (c *slowCache) isHeld(t *tile) bool {
	return slices.ContainsFunc(c.held, func(h heldTile) bool { return h.tile == t })
}

// forget takes a need of a window out of the plans.
func (c *slowCache) forget(order int64, key TileKey) {
	if i := slices.IndexFunc(c.plans, func(p plannedNeed) bool { return p.order == order && p.Key == key }); i >= 0 {
		c.plans = slices.Delete(c.plans, i, i+1)
	}
}

// get calls Get and checks what it does.
func (c *slowCache) get(t *rapid.T, key TileKey, n int, order int64, rows int) {
	before, evicted, heldBytes := map[TileKey]*tile{}, c.Evicted, c.Held
	for key, tile := range c.By {
		before[key] = tile
	}
	free := c.budget.Limit() - c.budget.Limit()/8 - c.budget.Used() + c.allowance // growing requests have an eighth
	c.forget(order, key)
	got, decode := c.Get(key, 0, n, order, rows)
	old := before[key]
	if old != nil && old.rows >= rows {
		if got != old || decode {
			t.Fatalf("tile %v is there, and Get returns another one", key)
		}
		content := old.Samples[0]
		c.held = append(c.held, heldTile{old, false, content})
		return
	}
	next, most := c.next(key)
	if old != nil && c.isHeld(old) || order > 0 && next == math.MaxInt64 {
		if got != nil || old != nil && c.isHeld(old) && c.By[key] != old {
			t.Fatalf("tile %v, which is in use or which no other window needs: %v", key, got)
		}
		return
	}
	if old != nil {
		heldBytes -= old.bytes
		delete(before, key)
	}
	gone := 0
	for other, tile := range before {
		if c.By[other] == tile {
			continue
		}
		gone++
		needed, _ := c.next(other)
		if c.isHeld(tile) || order > 0 && needed <= next {
			t.Fatalf("tile %v, which is in use or needed sooner, made room", other)
		}
		heldBytes -= tile.bytes
		for still, idle := range before { // is needed sooner or was used later
			if c.By[still] != idle || c.isHeld(idle) {
				continue
			}
			sooner, _ := c.next(still)
			if order > 0 && sooner > needed || order == 0 && c.used[still] < c.used[other] {
				t.Fatalf("tile %v made room, and not %v", other, still)
			}
		}
	}
	fits := heldBytes+int64(n) <= c.Bound && (c.Planned == nil || heldBytes+int64(n) <= free)
	if fits != (got != nil) || got != nil && !decode || c.Evicted-evicted < int64(gone) ||
		c.Evicted-evicted > int64(gone)+1 || (c.Evicted-evicted > int64(gone)) != (got == nil) {
		t.Fatalf("%d bytes beside %d of %d, %d free: %v, %v; evicted %d of %d", n, heldBytes, c.Bound, free, got,
			decode,
			c.Evicted-evicted, gone)
	}
	if got == nil {
		for other, idle := range c.By { // all that may go are gone
			if needed, _ := c.next(other); !c.isHeld(idle) && (order == 0 || needed > next) {
				t.Fatalf("no room, and tile %v stays", other)
			}
		}
		return
	}
	want := rows
	if order > 0 {
		want = max(rows, most)
	}
	if got.rows != want || len(got.Samples) != n {
		t.Fatalf("a tile of %d rows, %d bytes; want %d, %d", got.rows, len(got.Samples), want, n)
	}
	c.fill++
	for i := range got.Samples {
		got.Samples[i] = c.fill
	}
	c.held = append(c.held, heldTile{got, true, c.fill})
}

// putBack ends a Get, after Finish if the reader decodes.
func (c *slowCache) putBack(t *rapid.T, i int, failed bool) {
	held := c.held[i]
	c.held = slices.Delete(c.held, i, i+1)
	if held.decodes {
		c.Finish(held.tile, failed)
		if held.Failed != failed || (c.By[held.key] == held.tile) == failed {
			t.Fatalf("a tile that failed: %v; there: %v", held.Failed, c.By[held.key] == held.tile)
		}
		select {
		case <-held.Ready:
		default:
			t.Fatal("readers that wait are not woken")
		}
	}
	c.clock++
	c.used[held.key] = c.clock
	c.Put(held.tile)
}

// check compares what the cache counts with its tiles.
func (c *slowCache) check(t *rapid.T) {
	total, idle := int64(0), 0
	seen := map[*tile]bool{}
	for _, held := range c.held {
		if !bytes.Equal(held.Samples, bytes.Repeat([]byte{held.content}, len(held.Samples))) {
			t.Fatal("a tile in use is overwritten")
		}
		if !seen[held.tile] {
			total, seen[held.tile] = total+held.bytes, true
		}
	}
	for key, tile := range c.By {
		if tile.key != key || c.isHeld(tile) != (tile.place == heaps.Outside) {
			t.Fatalf("tile %v is called %v, or its place is wrong", key, tile.key)
		}
		if !seen[tile] {
			total += tile.bytes
		}
		if tile.place != heaps.Outside {
			idle++
		}
	}
	if total != c.Held || total > c.Bound || idle != len(c.Idle) {
		t.Fatalf("%d bytes of %d, %d idle tiles; counted %d, %d", total, c.Bound, idle, c.Held, len(c.Idle))
	}
	if c.Planned != nil && (c.allowance < c.Held || c.allowance > c.Bound) {
		t.Fatalf("%d bytes of tiles, %d charged", c.Held, c.allowance)
	}
	planned := 0
	for _, uses := range c.Planned {
		if planned += len(uses); len(uses) == 0 {
			t.Fatal("an empty list of plans stays")
		}
	}
	if c.Planned != nil && planned != len(c.plans) {
		t.Fatalf("%d plans, want %d", planned, len(c.plans))
	}
}

// TestTileCacheAgainstSlow: a cache has the tiles, plans and bytes that it says it has, gives no tile away that is in
// use, and makes room with the tiles that were used longest ago or are needed last.
func TestTileCacheAgainstSlow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bound := int64(rapid.IntRange(8, 60).Draw(t, "bound"))
		c := &slowCache{TileCache: NewTileCache(bound), used: map[TileKey]int{}}
		planned := rapid.Bool().Draw(t, "planned")
		if planned {
			c.budget = budget.New(int64(rapid.IntRange(8, 60).Draw(t, "budget")))
			c.TileCache = NewPlannedTiles(bound, c.budget)
		}
		key := rapid.Custom(func(t *rapid.T) TileKey {
			return TileKey{Chunk: rapid.IntRange(0, 5).Draw(t, "chunk"), Mask: rapid.Bool().Draw(t, "mask")}
		})
		rows := rapid.IntRange(1, 4)
		taken := int64(0) // of the budget, by others
		get := func(t *rapid.T) {
			order, key := int64(0), key.Draw(t, "key")
			if planned {
				order = int64(rapid.IntRange(1, 5).Draw(t, "order"))
			}
			c.get(t, key, 8-key.Chunk/3, order, rows.Draw(t, "rows"))
		}
		t.Repeat(map[string]func(*rapid.T){
			"": c.check, "get": get, "get too": get, "get again": get,
			"put": func(t *rapid.T) {
				if len(c.held) > 0 {
					c.putBack(t, rapid.IntRange(0, len(c.held)-1).Draw(t, "held"), rapid.IntRange(0, 3).Draw(t,
						"failed") == 0)
				}
			},
			"plan": func(t *rapid.T) {
				for range rapid.IntRange(0, 4).Draw(t, "plans") {
					if !planned {
						return
					}
					plan := plannedNeed{int64(rapid.IntRange(1, 5).Draw(t, "order")), Need{Key: key.Draw(t, "key"),
						Rows: rows.Draw(t, "rows")}}
					c.plans = append(c.plans, plan)
					c.Plan(plan.order, []Need{plan.Need})
				}
			},
			"forget": func(t *rapid.T) {
				if planned {
					order, key := int64(rapid.IntRange(1, 5).Draw(t, "order")), key.Draw(t, "key")
					c.forget(order, key)
					c.Forget(order, []Need{{Key: key}})
				}
			},
			"trim": func(t *rapid.T) {
				if rapid.IntRange(0, 3).Draw(t, "often") > 0 {
					return
				}
				if more := c.Reclaim(budget.Idle); more || len(c.Idle) > 0 || planned &&
					c.budget.Used() != c.Held+taken ||
					planned && c.allowance != c.Held || !planned && c.allowance != bound {
					t.Fatalf("%d idle tiles, %d bytes charged for %d", len(c.Idle), c.budget.Used()-taken, c.Held)
				}
			},
			"others": func(t *rapid.T) {
				if planned && c.budget.TryAcquire(3) {
					taken += 3
				} else if taken > 0 {
					c.budget.Release(taken)
					taken = 0
				}
			},
		})
		for len(c.held) > 0 {
			c.putBack(t, 0, false)
		}
		if c.Close(); len(c.By) > 0 || c.Held != 0 || planned && c.budget.Used() != taken {
			t.Fatalf("%d tiles of %d bytes stay", len(c.By), c.Held)
		}
	})
}

// TestTilesThatMakeRoom: of all tiles, the one that is needed last makes room, whenever it was used.
func TestTilesThatMakeRoom(t *testing.T) {
	const n = 40
	for _, last := range []int{0, 5, n - 2, n - 1} {
		c := NewPlannedTiles(n, budget.New(10*n))
		for i := range n {
			order := int64(10 + i%7)
			if i == last {
				order = 100
			}
			c.Plan(order, []Need{{Key: TileKey{Chunk: i}, Rows: 1}})
			tile, _ := c.Get(TileKey{Chunk: i}, 0, 1, 0, 1)
			c.Finish(tile, false)
			c.Put(tile)
		}
		if got := c.last(1); got == nil || got.key.Chunk != last {
			t.Errorf("tile %d is needed last: %+v makes room", last, got)
		}
		if got := c.last(100); got != nil {
			t.Errorf("tile %+v makes room for one that is needed sooner", got.key)
		}
	}
}

// TestTileCounterHasNoMemory: a cache of a dry run counts tiles that have no memory.
func TestTileCounterHasNoMemory(t *testing.T) {
	c := NewTileCounter(1 << 40)
	got, decode := c.Get(TileKey{}, 0, 1<<39, 0, 1)
	if got == nil || !decode || got.Samples != nil || c.Held != 1<<39 {
		t.Errorf("%+v, %v, %d bytes", got, decode, c.Held)
	}
}

// TestTilesMakeRoomForOthers: a cache gives its idle tiles to whoever waits for memory of its budget, and no tile once
// it is closed.
func TestTilesMakeRoomForOthers(t *testing.T) {
	for _, closed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := budget.New(100)
			c := NewPlannedTiles(100, b)
			if closed {
				c.Close()
			}
			tile, _ := c.Get(TileKey{}, 0, 60, 0, 1)
			c.Finish(tile, false)
			c.Put(tile)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			account, err := b.Open(ctx, 80)
			if (err == nil) == closed || (len(c.By) > 0) != closed {
				t.Errorf("closed %t: %d tiles stay, %v", closed, len(c.By), err)
			}
			if err == nil {
				account.Close()
			}
			if c.Trim(); !closed {
				c.Close()
			}
		})
	}
}

// TestKeptTiles: tiles stay without a planned window, in memory that others get back: those that wait for the budget,
// and other programs of the machine. What tiles take is charged, never more than the bound, and no tile in use changes.
func TestKeptTiles(t *testing.T) {
	const n, bound = 1 << 20, 64 << 20
	b := budget.New(1 << 30)
	c := NewKeptTiles(bound, 8<<20, b)
	defer c.Close()
	free := int64(1 << 40)
	c.keeper.available = func() int64 { return free }
	get := func(i, rows int) (there bool) {
		t.Helper()
		tile, decode := c.Get(TileKey{Chunk: i}, 0, n, 1, rows)
		if tile == nil {
			t.Fatalf("no room for tile %d", i)
		}
		if decode {
			tile.Samples[0], tile.Samples[n-1] = byte(i), byte(i)
			c.Finish(tile, false)
		} else if tile.Samples[0] != byte(i) || tile.Samples[n-1] != byte(i) {
			t.Fatalf("tile %d has the samples of another one", i)
		}
		c.Put(tile)
		taken, charged := c.bytesTaken(), b.Used()
		if taken > bound || taken < c.Held || charged != c.allowance || charged < taken {
			t.Fatalf("%d bytes of tiles in %d, %d charged", c.Held, c.bytesTaken(), b.Used())
		}
		return !decode
	}
	for i := range 100 {
		if get(i, 5) {
			t.Fatalf("tile %d is there at first", i)
		}
	}
	if !get(99, 3) || !get(60, 5) || get(0, 5) {
		t.Error("the last tiles stay, and the first one made room")
	}
	if get(99, 6) || !get(99, 1000) {
		t.Error("a tile that needs more rows is decoded once more, with all")
	}
	account, err := b.Open(t.Context(), b.Limit()*7/8-16<<20)
	if err != nil || c.bytesTaken() > 16<<20 {
		t.Fatalf("%d bytes stay although others wait: %v", c.bytesTaken(), err)
	}
	account.Close()
	for i := range 100 {
		get(i, 5)
	}
	free = 0
	c.keeper.due.Store(0)
	if get(99, 5); c.bytesTaken() > 8<<20 {
		t.Errorf("%d bytes stay although the machine has none", c.bytesTaken())
	}
}
