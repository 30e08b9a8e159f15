package columns

import (
	"bytes"
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
func (c *pageCache) announce(key pageKey) (over func()) {
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
func (c *pageCache) forget(key pageKey, cell *announcedCell, order int64) {
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
		c.Pages.Remove(key)
	}
}

// take returns the copy of an announced cell, if there is one, and says that the cell is read.
func (c *pageCache) take(key pageKey) (cell Cell, ok bool) {
	if !c.announced.some() {
		return Cell{}, false
	}
	copied, ok := c.Pages.Get(key)
	if ok {
		cell = *copied.cell
		c.read(key)
	}
	return cell, ok
}

// read says that an announced cell is read: a copy of it makes room for others, if no other read of it is announced.
func (c *pageCache) read(key pageKey) {
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
		c.Pages.Remove(key)
	}
}

// cellCost is about what the copy of a cell takes, beside its bytes.
const cellCost = 96

// copyCells copies the announced cells of a page into the cache. Of these and of the copies that it has, those that are
// read first stay, as many as it has room for. cellOf returns a cell of the page and its size, or nil.
func (f *File) copyCells(cache *pageCache, key pageKey, pages *parquet.Pages, cellOf func(in int) (*Cell, int64)) {
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
	first, rows := f.Groups[key.group].First+pages.Pages[key.page].First, int64(pages.Rows(key.page))
	stay, free := make([]copiedCell, 0, len(keys)), cache.Pages.Bound()
	for _, k := range keys {
		found, ok := cache.Pages.Get(k)
		one := copiedCell{key: k, decoded: found}
		if in := k.cell - 1 - first; !ok && k.file == key.file && k.column == key.column && in >= 0 && in < rows {
			one.decoded.cell, one.decoded.size = cellOf(int(in))
			one.new = true
		}
		if one.decoded.cell == nil {
			continue
		}
		if free -= one.cost() + lru.Overhead; free >= 0 {
			stay = append(stay, one)
		} else if free = 0; ok {
			cache.Pages.Remove(k)
		}
	}
	// The cell that is read first is used last, so the cache evicts it last.
	for _, one := range slices.Backward(stay) {
		if one.new {
			one.decoded.cell.Text = bytes.Clone(one.decoded.cell.Text) // a part of its page would keep all of that
			cache.Pages.Add(one.key, one.decoded, one.cost())
		} else {
			cache.Pages.Get(one.key)
		}
	}
}

// copiedCell is the copy of an announced cell.
type copiedCell struct {
	key     pageKey
	decoded decoded
	new     bool // not in the cache yet
}

// cost is about what the copy takes.
func (c *copiedCell) cost() int64 { return cellCost + c.decoded.size }
