package paged

import (
	"cmp"
	"context"
	"sync"

	"github.com/chaski-eo/chaski/format/tables/parquet"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/lru"
)

// Cache keeps the decoded pages of files, and copies of cells that are read soon.
type Cache struct {
	pages *lru.Cache[pageKey, decoded]

	announced announced

	account *budget.Account // of the opening, for memory that the cache does not count

	mu    sync.Mutex
	large map[int]largePage // by column; nil: none are kept

	// busy has what is read, so that workers do not read the same at once: the first batch of 64 rows would read the
	// locations and the first page of each column 64 times. busyMu guards it; busyOver wakes those that wait.
	busyMu   sync.Mutex
	busyOver *sync.Cond
	busy     map[pageKey]bool
}

// NewCache returns a cache of about so many bytes at most.
func NewCache(bytes int64) *Cache {
	c := &Cache{pages: lru.New[pageKey, decoded](bytes), busy: map[pageKey]bool{}}
	c.busyOver = sync.NewCond(&c.busyMu)
	return c
}

// KeepLarge has the cache keep beside it the last page of each column that is larger than it, and charge that to an
// account, which may be nil.
func (c *Cache) KeepLarge(account *budget.Account) *Cache {
	c.large, c.account = map[int]largePage{}, account
	return c
}

// Used returns about how many bytes the cache has.
func (c *Cache) Used() int64 { return c.pages.Used() }

// Forget drops the pages of a column of all files.
func (c *Cache) Forget(leaf int) { c.pages.Forget(func(k pageKey) bool { return k.column == leaf }) }

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
	cell *parquet.Values // of one row
	size int64           // of the cell, in bytes
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

// numbered returns the key of another page of the column.
func (k pageKey) numbered(page int) pageKey {
	k.page = page
	return k
}

// page returns a decoded page, from the cache if possible. If it waits for the page of another worker, and arrived
// reports true then, it returns nil: the caller has its cell. arrived may be nil.
//
// A page keeps its dictionary alive. Every use of a page also touches the dictionary's entry, after the page's own, so
// the cache evicts the dictionary after its pages, and counts its memory as long as it is in use.
func (f *File) page(ctx context.Context, c chunk, page int, arrived func() bool) (*parquet.Few, error) {
	cache, key := f.Cache, c.key.numbered(page)
	if few := cache.page(key); few != nil {
		return few, nil
	}
	heavy, alone := cache.isHeavy(c.pages.Pages[page]) || cache.isHeavy(c.pages.Dict), key
	if heavy {
		alone = pageKey{page: heavyPage}
	}
	var few *parquet.Few
	over := cache.alone(alone, func() bool {
		few = cache.page(key)
		return few != nil || arrived != nil && arrived()
	})
	if over == nil {
		return few, nil
	}
	defer over()
	var dictErr error
	few, err := c.file.ReadFew(ctx, key.group, key.column, c.pages, page, func() (dict *parquet.Values, _ error) {
		dict, dictErr = f.dictionary(ctx, c)
		return dict, dictErr
	})
	if err = cmp.Or(dictErr, err); err != nil { // the first names the dictionary, not the page
		return nil, err
	}
	entry, dictCost := decoded{few: few, dict: few.Dictionary()}, int64(0)
	if entry.dict != nil {
		dictCost = int64(entry.dict.Cost())
	}
	cache.keep(key, entry, int64(few.Cost()), dictCost)
	if heavy {
		f.copyCells(cache, c, page, func(in int) (size int64, copied func() *parquet.Values) {
			values, i, err := few.Find(in)
			if err != nil { // whoever reads the cell reports it
				return 0, nil
			}
			if !values.Null(i) {
				size = int64(len(values.Raw(i)))
			}
			return size, func() *parquet.Values { return values.Copy(i) }
		})
	}
	return few, nil
}

// keep adds a decoded page to the cache. The page takes cost bytes, its dictionary dictCost.
func (c *Cache) keep(key pageKey, page decoded, cost, dictCost int64) {
	// A large dictionary is counted with each page, because it may be evicted before its pages, which keep it alive.
	if dictCost > c.pages.Bound()/8 {
		cost += dictCost
	}
	if c.large != nil && cost+lru.Overhead > c.pages.Bound() {
		c.keepLarge(largePage{key, page.few, cost})
	} else if c.add(key, page, cost); page.dict != nil {
		c.pages.Get(key.numbered(dictPage))
	}
}

// page returns a page that is in memory, or nil.
func (c *Cache) page(key pageKey) *parquet.Few {
	page, ok := c.pages.Get(key)
	if !ok {
		return c.largeOf(key)
	}
	if page.dict != nil {
		c.pages.Get(key.numbered(dictPage))
	}
	return page.few
}

// alone waits until no other worker reads what key names, or until found reports true. It returns nil if found did,
// else the function that the caller must call when it has read.
func (c *Cache) alone(key pageKey, found func() bool) (over func()) {
	c.busyMu.Lock()
	defer c.busyMu.Unlock()
	for !found() {
		if !c.busy[key] {
			c.busy[key] = true
			return func() { c.end(key) }
		}
		c.busyOver.Wait()
	}
	return nil
}

// end ends what alone began.
func (c *Cache) end(key pageKey) {
	c.busyMu.Lock()
	defer c.busyMu.Unlock()
	delete(c.busy, key)
	c.busyOver.Broadcast() // all, as each may have its cell now
}

// add keeps a page or a dictionary. A heavy one displaces nothing while cells are announced: these are needed soon, and
// the cells of the page have copies.
func (c *Cache) add(key pageKey, d decoded, cost int64) {
	free := c.pages.Bound() - c.pages.Used()
	if c.Heavy(cost) && cost+lru.Overhead > free && c.announced.some() {
		return
	}
	c.pages.Add(key, d, cost)
}

// Heavy reports whether a page of so many bytes takes at least an eighth of the cache: with eight such pages it is
// full.
func (c *Cache) Heavy(bytes int64) bool { return bytes > c.pages.Bound()/8 }

// isHeavy is Heavy of a page that is not decoded. Pages of bytes have about the size that is stored.
func (c *Cache) isHeavy(p parquet.Page) bool { return c.Heavy(int64(p.Len)) }

// dictionary returns the dictionary of a column in a row group, from the cache if possible, or nil if it has none.
func (f *File) dictionary(ctx context.Context, c chunk) (*parquet.Values, error) {
	if c.pages.Dict.Off == 0 {
		return nil, nil
	}
	key := c.key.numbered(dictPage)
	var dict *parquet.Values
	over := f.Cache.alone(key, func() bool {
		page, _ := f.Cache.pages.Get(key)
		dict = page.dict
		return dict != nil
	})
	if over == nil {
		return dict, nil
	}
	defer over()
	dict, err := c.file.Dictionary(ctx, key.group, key.column, c.pages)
	if err == nil {
		f.Cache.add(key, decoded{dict: dict}, int64(dict.Cost()))
	}
	return dict, err
}

// largeOf returns a page that is kept beside the cache, or nil.
func (c *Cache) largeOf(key pageKey) *parquet.Few {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.large[key.column]; p.key == key {
		return p.page
	}
	return nil
}

// keepLarge keeps a page beside the cache, in the place of the column's last one, if the budget has room for it.
func (c *Cache) keepLarge(p largePage) {
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
