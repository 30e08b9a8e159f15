package paged

import (
	"context"

	"github.com/chaski-eo/chaski/format/tables/parquet"
)

// Counter counts the pages that a run reads of files. It has a cache of the same size as theirs, which holds the sizes
// of pages alone, and reads no page.
type Counter struct {
	cache *Cache
	least int64 // bytes of a read
}

// Reads are how many reads of pages a cell takes, their bytes, and about how many bytes the cell has.
type Reads struct{ Requests, Bytes, Cell int64 }

// NewCounter returns a counter of the files of a cache. A read takes at least least bytes.
func (c *Cache) NewCounter(least int64) *Counter {
	return &Counter{NewCache(c.pages.Bound()).KeepLarge(nil), least}
}

// Announce is File.Announce for the counter.
func (p *Counter) Announce(f *File, leaf int, row int64) (over func()) {
	return p.cache.announce(f.cellKey(leaf, row))
}

// indexBytes is more than a page takes for each row whose value it has in a dictionary.
const indexBytes = 8

// Read counts what File.Value reads. It reads where pages are alone. All cells of a page count as equal.
func (p *Counter) Read(ctx context.Context, f *File, leaf int, row int64) (reads Reads, err error) {
	cache := p.cache
	group, in := f.Group(row)
	chunk, err := f.open(ctx, leaf, group)
	if err != nil {
		return reads, err
	}
	pages := chunk.pages
	key := chunk.key.numbered(pages.Find(in))
	page, rows := pages.Pages[key.page], int64(pages.Rows(key.page))
	hasDict := pages.Dict.Off != 0 && int64(page.Len) < indexBytes*(rows+indexBytes)
	reads.Cell = int64(page.Len) / rows
	if hasDict {
		reads.Cell = int64(pages.Dict.Len) / f.Groups[group].Rows
	}
	if cache.take(f.cellKey(leaf, row)) != nil {
		return reads, nil
	}
	if cache.page(key) == nil {
		reads.add(page, p.least)
		entry, dictCost := decoded{few: &parquet.Few{}}, int64(0)
		if hasDict {
			dictKey := key.numbered(dictPage)
			entry.dict, dictCost = &parquet.Values{}, int64(pages.Dict.Len)
			if _, ok := cache.pages.Get(dictKey); !ok {
				reads.add(pages.Dict, p.least)
				cache.add(dictKey, entry, dictCost)
			}
		}
		cache.keep(key, entry, int64(page.Len), dictCost)
		if cache.isHeavy(page) || cache.isHeavy(pages.Dict) {
			f.copyCells(cache, chunk, key.page, func(int) (int64, func() *parquet.Values) {
				return reads.Cell, func() *parquet.Values { return &parquet.Values{} }
			})
		}
	}
	cache.read(f.cellKey(leaf, row))
	return reads, nil
}

// add adds the reads of a page. The header and the body of a large page are two reads: see parquet.File.load.
func (r *Reads) add(p parquet.Page, least int64) {
	r.Bytes += max(int64(p.Len), least)
	if r.Requests++; p.Len > 1<<20 {
		r.Requests++
	}
}
