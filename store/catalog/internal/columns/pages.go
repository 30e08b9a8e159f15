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

// pageCache keeps the decoded pages of the files of a table.
type pageCache struct {
	Pages *lru.Cache[pageKey, decoded]

	account *budget.Account // of the opening, for memory that the cache does not count

	mu    sync.Mutex
	large map[int]largePage // by column

	// heavy is held while a page is decoded that takes much of the cache, so that workers do not decode the same one
	// at once, each into memory of its own.
	heavy sync.Mutex
}

func newPageCache(ctx context.Context, bytes int64) *pageCache {
	return &pageCache{Pages: lru.New[pageKey, decoded](bytes), large: map[int]largePage{}, account: budget.Of(ctx)}
}

// largePage is the page of a column that was used last of those that are larger than the cache. Otherwise each row of
// such a page would decode it again: a file of 10 KB may have a page of 64 MiB and a million rows.
type largePage struct {
	key  pageKey
	page *parquet.Few
	cost int64
}

// decoded is a page, or a dictionary.
type decoded struct {
	few  *parquet.Few
	dict *parquet.Values
}

type pageKey struct{ file, column, group, page int }

// dictPage is the page number of a dictionary.
const dictPage = -1

// pagesOf returns the locations of a column's pages in a row group.
func (f *File) pagesOf(ctx context.Context, column, group int) (*parquet.Pages, error) {
	key := pageKey{column: column, group: group}
	f.mu.Lock()
	pages := f.pages[key]
	f.mu.Unlock()
	if pages != nil {
		return pages, nil
	}
	pages, err := f.Pages(ctx, group, column)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.pages[key] = pages
	f.mu.Unlock()
	return pages, nil
}

// page returns a decoded page, from the cache if possible.
//
// A page keeps its dictionary alive. Every use of a page also touches the dictionary's entry, after the page's own, so
// that the cache evicts the dictionary after its pages, and counts its memory as long as it is in use.
func (f *File) page(ctx context.Context, key pageKey, pages *parquet.Pages) (*parquet.Few, error) {
	cache, dictKey := f.Cache, pageKey{key.file, key.column, key.group, dictPage}
	if page, ok := cache.Pages.Get(key); ok {
		if page.few.Dictionary() != nil {
			cache.Pages.Get(dictKey)
		}
		return page.few, nil
	}
	if few := cache.largeOf(key); few != nil {
		return few, nil
	}
	if cache.isHeavy(pages.Pages[key.page]) || cache.isHeavy(pages.Dict) {
		// The worker that decodes may wait for the turn that this one would otherwise keep.
		turns.Rest(ctx)
		cache.heavy.Lock()
		defer cache.heavy.Unlock()
		if page, ok := cache.Pages.Get(key); ok { // another worker decoded it meanwhile
			return page.few, nil
		}
		if few := cache.largeOf(key); few != nil {
			return few, nil
		}
	}
	var dictErr error
	few, err := f.ReadFew(ctx, key.group, key.column, pages, key.page, func() (dict *parquet.Values, _ error) {
		dict, dictErr = f.dictionary(ctx, dictKey, pages)
		return dict, dictErr
	})
	if err = cmp.Or(dictErr, err); err != nil { // the first names the dictionary, not the page
		return nil, err
	}
	cost := int64(0)
	// A large dictionary is counted with each page, because it may be evicted before its pages, which keep it alive.
	dict := few.Dictionary()
	if dict != nil && int64(dict.Cost()) > cache.Pages.Bound()/8 {
		cost = int64(dict.Cost())
	}
	if cost += int64(few.Cost()); cost+lru.Overhead > cache.Pages.Bound() {
		cache.keepLarge(largePage{key, few, cost})
		return few, nil
	}
	cache.Pages.Add(key, decoded{few: few}, cost)
	if dict != nil {
		cache.Pages.Get(dictKey)
	}
	return few, nil
}

// isHeavy reports whether a page takes at least an eighth of the cache: with eight such pages it is full. Pages of
// bytes have about the size that is stored.
func (c *pageCache) isHeavy(p parquet.Page) bool { return int64(p.Len) > c.Pages.Bound()/8 }

// dictionary returns the dictionary of a column in a row group, from the cache if possible, or nil if it has none.
func (f *File) dictionary(ctx context.Context, key pageKey, pages *parquet.Pages) (*parquet.Values, error) {
	if pages.Dict.Off == 0 {
		return nil, nil
	}
	if page, ok := f.Cache.Pages.Get(key); ok {
		return page.dict, nil
	}
	dict, err := f.Dictionary(ctx, key.group, key.column, pages)
	if err == nil {
		f.Cache.Pages.Add(key, decoded{dict: dict}, int64(dict.Cost()))
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
