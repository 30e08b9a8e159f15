package columns

import (
	"context"

	"github.com/chaski-eo/chaski/format/tables/parquet"
)

// PageCounter counts the pages that a run reads of a table's Parquet files. It has a cache of the same size, which
// holds the sizes of pages alone, and reads no page.
type PageCounter struct {
	cache *pageCache
	least int64 // bytes of a read
}

// PageReads are how many reads of pages a cell takes, their bytes, and about how many bytes the cell has.
type PageReads struct{ Requests, Bytes, Cell int64 }

// NewPageCounter returns a counter whose cache is empty. A read takes at least least bytes. The table must be of
// Parquet files.
func (t *Table) NewPageCounter(least int64) *PageCounter {
	return &PageCounter{newPageCache(nil, t.Files[0].Cache.Pages.Bound()), least}
}

// Announce is Column.Announce for the counter.
func (p *PageCounter) Announce(c *Column, row int64) (over func()) { return c.announce(p.cache, row) }

// Read counts what Column.Cell reads. It reads where pages are alone.
func (p *PageCounter) Read(ctx context.Context, c *Column, row int64) (PageReads, error) {
	return c.count(ctx, p, row)
}

// indexBytes is more than a page takes for each row whose value it has in a dictionary.
const indexBytes = 8

// count is cellAt with the sizes of pages. All cells of a page count as equal.
func (f *File) count(ctx context.Context, p *PageCounter, leaf int, row int64) (reads PageReads, err error) {
	cache := p.cache
	group, in := f.Group(row)
	pages, err := f.pagesOf(ctx, leaf, group)
	if err != nil {
		return reads, err
	}
	key := pageKey{file: f.number, column: leaf, group: group, page: pages.Find(in)}
	page, rows := pages.Pages[key.page], int64(pages.Rows(key.page))
	hasDict := pages.Dict.Off != 0 && int64(page.Len) < indexBytes*(rows+indexBytes)
	reads.Cell = int64(page.Len) / rows
	if hasDict {
		reads.Cell = int64(pages.Dict.Len) / f.Groups[group].Rows
	}
	if _, ok := cache.take(f.cellKey(leaf, row)); ok {
		return reads, nil
	}
	if cache.page(key) == nil {
		reads.add(page, p.least)
		entry, dictCost := decoded{few: &parquet.Few{}}, int64(0)
		if hasDict {
			entry.dict, dictCost = &parquet.Values{}, int64(pages.Dict.Len)
			if _, ok := cache.Pages.Get(key.dictionary()); !ok {
				reads.add(pages.Dict, p.least)
				cache.add(key.dictionary(), entry, dictCost)
			}
		}
		cache.keep(key, entry, int64(page.Len), dictCost)
		if cache.isHeavy(page) || cache.isHeavy(pages.Dict) {
			f.copyCells(cache, key, pages, func(int) (*Cell, int64) { return &Cell{}, reads.Cell })
		}
	}
	cache.read(f.cellKey(leaf, row))
	return reads, nil
}

// add adds the reads of a page. The header and the body of a large page are two reads: see parquet.File.load.
func (r *PageReads) add(p parquet.Page, least int64) {
	r.Bytes += max(int64(p.Len), least)
	if r.Requests++; p.Len > 1<<20 {
		r.Requests++
	}
}
