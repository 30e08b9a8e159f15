package columns

import (
	"cmp"
	"context"
	"sync"

	"github.com/chaski-eo/chaski/format/tables/parquet"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/lru"
	"github.com/chaski-eo/chaski/internal/turns"
)

// pageCache keeps the decoded pages of the files of a table, and copies of cells that are read soon.
type pageCache struct {
	Pages *lru.Cache[pageKey, decoded]

	announced announced

	account *budget.Account // of the opening, for memory that the cache does not count

	mu    sync.Mutex
	large map[int]largePage // by column

	// busy has what is read, so workers do not read the same at once: the first batch of 64 rows would read the
	// locations and the first page of each column 64 times. busyMu guards it; busyOver wakes those that wait.
	busyMu   sync.Mutex
	busyOver *sync.Cond
	busy     map[pageKey]bool
}

func newPageCache(account *budget.Account, bytes int64) *pageCache {
	c := &pageCache{Pages: lru.New[pageKey, decoded](bytes), large: map[int]largePage{}, account: account,
		busy: map[pageKey]bool{}}
	c.busyOver = sync.NewCond(&c.busyMu)
	return c
}

// largePage is the page of a column that was used last of those that are larger than the cache. Otherwise each row of
// such a page would decode it again: a file of 10 KB may have a page of 64 MiB and a million rows.
type largePage struct {
	key  pageKey
	page *parquet.Few
	cost int64
}

// decoded is a page with its dictionary, a dictionary alone, or the copy of an announced cell.
type decoded struct {
	few  *parquet.Few
	dict *parquet.Values
	cell *Cell
	size int64 // of the cell, in bytes
}

// pageKey names a page or, by the number of its row in the file plus 1, an announced cell of a column.
type pageKey struct {
	file, column, group, page int
	cell                      int64
}

// Page numbers that are not of pages.
const (
	dictPage  = -1 // of a dictionary
	locations = -2 // of the locations of pages
	heavyPage = -3 // of any page that takes much of the cache: one is decoded at a time
)

// pagesOf returns the locations of a column's pages in a row group.
func (f *File) pagesOf(ctx context.Context, column, group int) (*parquet.Pages, error) {
	key := pageKey{column: column, group: group}
	var pages *parquet.Pages
	known := func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		pages = f.pages[key]
		return pages != nil
	}
	if known() {
		return pages, nil
	}
	over := f.Cache.alone(ctx, pageKey{file: f.number, column: column, group: group, page: locations}, known)
	if over == nil {
		return pages, nil
	}
	defer over()
	pages, err := f.Pages(ctx, group, column)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.pages[key] = pages
	f.mu.Unlock()
	return pages, nil
}

// page returns a decoded page, from the cache if possible. If it waits for the page of another worker, and arrived
// reports true then, it returns nil: the caller has its cell. arrived may be nil.
//
// A page keeps its dictionary alive. Every use of a page also touches the dictionary's entry, after the page's own, so
// the cache evicts the dictionary after its pages, and counts its memory as long as it is in use.
func (f *File) page(ctx context.Context, key pageKey, pages *parquet.Pages, arrived func() bool) (*parquet.Few, error) {
	cache, dictKey := f.Cache, key.dictionary()
	if few := cache.page(key); few != nil {
		return few, nil
	}
	heavy, alone := cache.isHeavy(pages.Pages[key.page]) || cache.isHeavy(pages.Dict), key
	if heavy {
		alone = pageKey{page: heavyPage}
	}
	var few *parquet.Few
	over := cache.alone(ctx, alone, func() bool {
		few = cache.page(key)
		return few != nil || arrived != nil && arrived()
	})
	if over == nil {
		return few, nil
	}
	defer over()
	var dictErr error
	few, err := f.ReadFew(ctx, key.group, key.column, pages, key.page, func() (dict *parquet.Values, _ error) {
		dict, dictErr = f.dictionary(ctx, dictKey, pages)
		return dict, dictErr
	})
	if err = cmp.Or(dictErr, err); err != nil { // the first names the dictionary, not the page
		return nil, err
	}
	page, dictCost := decoded{few: few, dict: few.Dictionary()}, int64(0)
	if page.dict != nil {
		dictCost = int64(page.dict.Cost())
	}
	cache.keep(key, page, int64(few.Cost()), dictCost)
	if heavy {
		f.copyCells(cache, key, pages, func(in int) (*Cell, int64) {
			values, i, err := few.Find(in)
			switch {
			case err != nil: // whoever reads the cell reports it
				return nil, 0
			case values.Null(i):
				return &Cell{Null: true}, 0
			}
			text := values.Raw(i)
			return &Cell{Text: text}, int64(len(text))
		})
	}
	return few, nil
}

// keep adds a decoded page to the cache. The page takes cost bytes, its dictionary dictCost.
func (c *pageCache) keep(key pageKey, page decoded, cost, dictCost int64) {
	// A large dictionary is counted with each page, because it may be evicted before its pages, which keep it alive.
	if dictCost > c.Pages.Bound()/8 {
		cost += dictCost
	}
	if cost+lru.Overhead > c.Pages.Bound() {
		c.keepLarge(largePage{key, page.few, cost})
	} else if c.add(key, page, cost); page.dict != nil {
		c.Pages.Get(key.dictionary())
	}
}

// page returns a page that is in memory, or nil.
func (c *pageCache) page(key pageKey) *parquet.Few {
	page, ok := c.Pages.Get(key)
	if !ok {
		return c.largeOf(key)
	}
	if page.dict != nil {
		c.Pages.Get(key.dictionary())
	}
	return page.few
}

// alone waits until no other worker reads what key names, or until found reports true. It returns nil if found did,
// else the function that the caller must call when it has read.
func (c *pageCache) alone(ctx context.Context, key pageKey, found func() bool) (over func()) {
	c.busyMu.Lock()
	defer c.busyMu.Unlock()
	for !found() {
		if !c.busy[key] {
			c.busy[key] = true
			return func() { c.end(key) }
		}
		turns.Rest(ctx) // the worker that reads may wait for the turn that this one would otherwise keep
		c.busyOver.Wait()
	}
	return nil
}

// end ends what alone began.
func (c *pageCache) end(key pageKey) {
	c.busyMu.Lock()
	defer c.busyMu.Unlock()
	delete(c.busy, key)
	c.busyOver.Broadcast() // all, as each may have its cell now
}

// add keeps a page or a dictionary. A heavy one displaces nothing while cells are announced: these are needed soon, and
// the cells of the page have copies.
func (c *pageCache) add(key pageKey, d decoded, cost int64) {
	free := c.Pages.Bound() - c.Pages.Used()
	if cost > c.Pages.Bound()/8 && cost+lru.Overhead > free && c.announced.some() {
		return
	}
	c.Pages.Add(key, d, cost)
}

// dictionary returns the key of the dictionary of a page.
func (k pageKey) dictionary() pageKey {
	return pageKey{file: k.file, column: k.column, group: k.group, page: dictPage}
}

// isHeavy reports whether a page takes at least an eighth of the cache: with eight such pages it is full. Pages of
// bytes have about the size that is stored.
func (c *pageCache) isHeavy(p parquet.Page) bool { return int64(p.Len) > c.Pages.Bound()/8 }

// IsHeavy reports whether a page of so many bytes is heavy for the cache of the table's files.
func (t *Table) IsHeavy(pageBytes int64) bool {
	return len(t.Files) > 0 && pageBytes > t.Files[0].Cache.Pages.Bound()/8
}

// dictionary returns the dictionary of a column in a row group, from the cache if possible, or nil if it has none.
func (f *File) dictionary(ctx context.Context, key pageKey, pages *parquet.Pages) (*parquet.Values, error) {
	if pages.Dict.Off == 0 {
		return nil, nil
	}
	var dict *parquet.Values
	over := f.Cache.alone(ctx, key, func() bool {
		page, _ := f.Cache.Pages.Get(key)
		dict = page.dict
		return dict != nil
	})
	if over == nil {
		return dict, nil
	}
	defer over()
	dict, err := f.Dictionary(ctx, key.group, key.column, pages)
	if err == nil {
		f.Cache.add(key, decoded{dict: dict}, int64(dict.Cost()))
	}
	return dict, err
}

// largeOf returns a page that is kept beside the cache, or nil.
func (c *pageCache) largeOf(key pageKey) *parquet.Few {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.large[key.column]; p.key == key {
		return p.page
	}
	return nil
}

// keepLarge keeps a page beside the cache, in the place of the column's last one, if the budget has room for it.
func (c *pageCache) keepLarge(p largePage) {
	c.mu.Lock()
	old := c.large[p.key.column]
	delete(c.large, p.key.column)
	c.mu.Unlock()
	// Without the lock, because it wakes others.
	c.account.Shrink(old.cost)
	if !c.account.TryGrow(p.cost) {
		return
	}
	c.mu.Lock()
	old = c.large[p.key.column] // of another worker, since the lock was free
	c.large[p.key.column] = p
	c.mu.Unlock()
	c.account.Shrink(old.cost)
}
