package paged

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/chaski-eo/chaski/format/tables/parquet"
	"github.com/chaski-eo/chaski/internal/lru"
)

// announced are the cells that are read soon. A page of 22 MB may have 44 of them, in any order: when it is read for
// one of them, the others are copied, so the page is not read again for each.
type announced struct {
	count atomic.Int64 // of cells; most tables announce none, and their cells are read often

	mu    sync.Mutex // guards the fields below
	cells map[pageKey]*announcedCell
	order int64 // of the last one
}

// announcedCell is a cell that is read soon.
type announcedCell struct {
	uses   int     // announcements that are not over
	unread []int64 // the order of those without a read, the first one first: it is read first
}

// some reports whether any cells are announced.
func (a *announced) some() bool { return a.count.Load() > 0 }

// cellKey returns the key of an announced cell.
func (f *File) cellKey(leaf int, row int64) pageKey {
	return pageKey{file: f.number, column: leaf, cell: row + 1}
}

// announce says that a cell is read soon, until over is called.
func (c *Cache) announce(key pageKey) (over func()) {
	a := &c.announced
	a.mu.Lock()
	defer a.mu.Unlock()
	a.order++
	cell := a.cells[key]
	if cell == nil {
		if a.cells == nil {
			a.cells = map[pageKey]*announcedCell{}
		}
		cell = &announcedCell{}
		a.cells[key] = cell
		a.count.Add(1)
	}
	cell.uses++
	cell.unread = append(cell.unread, a.order)
	order := a.order
	return func() { c.forget(key, cell, order) }
}

// forget ends an announcement of a cell. Callers may read a cell in another order than they announced it, and read
// strikes the first announcement, whoever reads. So forget strikes one only if more are left than callers.
func (c *Cache) forget(key pageKey, cell *announcedCell, order int64) {
	a := &c.announced
	a.mu.Lock()
	defer a.mu.Unlock()
	if cell.uses--; cell.uses == 0 {
		delete(a.cells, key)
		a.count.Add(-1)
	}
	if len(cell.unread) > cell.uses { // this caller has not read it
		i, _ := slices.BinarySearch(cell.unread, order)
		i = min(i, cell.uses)
		cell.unread = slices.Delete(cell.unread, i, i+1)
	}
	if len(cell.unread) == 0 {
		c.pages.Remove(key)
	}
}

// take returns the copy of an announced cell, if there is one, and says that the cell is read.
func (c *Cache) take(key pageKey) *parquet.Values {
	if !c.announced.some() {
		return nil
	}
	copied, ok := c.pages.Get(key)
	if ok {
		c.read(key)
	}
	return copied.cell
}

// read says that an announced cell is read: a copy of it makes room for others, if no other read of it is announced.
func (c *Cache) read(key pageKey) {
	a := &c.announced
	if !a.some() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	cell := a.cells[key]
	if cell != nil && len(cell.unread) > 0 {
		cell.unread = cell.unread[1:]
	}
	if cell == nil || len(cell.unread) == 0 {
		c.pages.Remove(key)
	}
}

// cellCost is about what the copy of a cell takes, beside its bytes: see parquet.Values.Cost.
const cellCost = 160

// Announce says that the cell of a row is read soon, after those that were announced before, until the caller calls
// over: when another row of a heavy page is read, a copy of the cell is kept for that.
func (f *File) Announce(leaf int, row int64) (over func()) {
	return f.Cache.announce(f.cellKey(leaf, row))
}

// copyCells copies the announced cells of a page into the cache. Of these and of the copies that it has, those that are
// read first stay, as many as it has room for. cellOf returns the size of a cell of the page, and what copies it, or
// nil.
func (f *File) copyCells(cache *Cache, c chunk, page int, cellOf func(in int) (int64, func() *parquet.Values)) {
	a := &cache.announced
	a.mu.Lock()
	defer a.mu.Unlock()
	keys := make([]pageKey, 0, len(a.cells))
	for k, cell := range a.cells {
		if len(cell.unread) > 0 {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(x, y pageKey) int { return cmp.Compare(a.cells[x].unread[0], a.cells[y].unread[0]) })
	first, rows := f.Groups[c.key.group].First+c.pages.Pages[page].First, int64(c.pages.Rows(page))
	type announcedCopy struct {
		key  pageKey
		size int64
		copy func() *parquet.Values // nil: the cache has it
	}
	stay, free := make([]announcedCopy, 0, len(keys)), cache.pages.Bound()
	for _, k := range keys {
		found, ok := cache.pages.Get(k)
		one := announcedCopy{key: k, size: found.size}
		if in := k.cell - 1 - first; !ok && k.file == c.key.file && k.column == c.key.column && in >= 0 && in < rows {
			one.size, one.copy = cellOf(int(in))
		}
		if !ok && one.copy == nil {
			continue
		}
		if free -= cellCost + one.size + lru.Overhead; free >= 0 {
			stay = append(stay, one)
		} else if free = 0; ok {
			cache.pages.Remove(k)
		}
	}
	// The cell that is read first is used last, so the cache evicts it last.
	for _, one := range slices.Backward(stay) {
		if one.copy != nil {
			cache.pages.Add(one.key, decoded{cell: one.copy(), size: one.size}, cellCost+one.size)
		} else {
			cache.pages.Get(one.key)
		}
	}
}
