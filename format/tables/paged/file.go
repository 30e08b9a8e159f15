// Package paged reads columns of Parquet files by pages, and keeps decoded pages in a cache. Tables read whole columns
// or some of their rows, datasets and layers of shapes single cells.
package paged

import (
	"context"
	"sync"

	"github.com/chaski-eo/chaski/format/tables/parquet"
)

// File is a Parquet file whose pages are decoded on demand. It is safe for concurrent use.
type File struct {
	*parquet.File
	Cache *Cache
	Far   bool // reads are requests: scans ask for several row groups at a time

	number  int   // among the files that share the cache
	oneRead int64 // see New
	mu      sync.Mutex
	located map[pageKey]*parquet.Pages // by column and group
}

// New returns a file whose decoded pages are kept in a cache, which other files may share: number tells them apart.
// Columns of a row group that have up to whole bytes are read in one request, others page by page.
func New(f *parquet.File, cache *Cache, number int, whole int64) *File {
	return &File{File: f, Cache: cache, number: number, oneRead: whole, located: map[pageKey]*parquet.Pages{}}
}

// chunk is a column of a row group whose pages are located.
type chunk struct {
	key   pageKey       // its page is 0
	file  *parquet.File // has the column's bytes in memory where they were read in one request
	pages *parquet.Pages
}

// open locates the pages of a column in a row group, and keeps where they lie.
func (f *File) open(ctx context.Context, leaf, group int) (chunk, error) {
	c := chunk{key: pageKey{file: f.number, column: leaf, group: group}, file: f.File}
	known := func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		c.pages = f.located[c.key]
		return c.pages != nil
	}
	if known() {
		return c, nil
	}
	over := f.Cache.alone(c.key.numbered(locations), known)
	if over == nil {
		return c, nil
	}
	defer over()
	err := f.locate(ctx, &c, f.oneRead)
	if err == nil {
		f.mu.Lock()
		f.located[c.key] = c.pages
		f.mu.Unlock()
	}
	return c, err
}

// locate locates the pages of a column, which it reads in one request if it has up to whole bytes.
func (f *File) locate(ctx context.Context, c *chunk, whole int64) (err error) {
	if c.file, err = f.Buffered(ctx, c.key.group, c.key.column, whole); err == nil {
		c.pages, err = c.file.Pages(ctx, c.key.group, c.key.column)
	}
	return err
}

// Extent returns the bytes of the page that holds the value in a row of a column; 0 if its length is not known.
func (f *File) Extent(ctx context.Context, leaf int, row int64) (off, n int64, err error) {
	group, in := f.Group(row)
	chunk, err := f.open(ctx, leaf, group)
	if err != nil {
		return 0, 0, err
	}
	page := chunk.pages.Pages[chunk.pages.Find(in)]
	return page.Off, int64(page.Len), nil
}

// Value returns the values that hold the one in a row of a column without lists, and which of them it is.
func (f *File) Value(ctx context.Context, leaf int, row int64) (v *parquet.Values, i int, err error) {
	group, in := f.Group(row)
	chunk, err := f.open(ctx, leaf, group)
	if err != nil {
		return nil, 0, err
	}
	page := chunk.pages.Find(in)
	var copied *parquet.Values
	take := func() bool {
		copied = f.Cache.take(f.cellKey(leaf, row))
		return copied != nil
	}
	if take() {
		return copied, 0, nil
	}
	few, err := f.page(ctx, chunk, page, take)
	if few == nil || err != nil {
		return copied, 0, err
	}
	f.Cache.read(f.cellKey(leaf, row))
	return few.Find(int(in - chunk.pages.Pages[page].First))
}

// List calls visit with the elements of the list in a row, as Value returns them, and with what Few.Rep says of each.
// It reports whether the list is null.
func (f *File) List(ctx context.Context, leaf int, row int64,
	visit func(v *parquet.Values, i, rep int, empty bool) error) (null bool, err error) {
	group, in := f.Group(row)
	chunk, err := f.open(ctx, leaf, group)
	if err != nil {
		return false, err
	}
	page := chunk.pages.Find(in)
	first := int(in - chunk.pages.Pages[page].First)
	// A list may go on in the pages after the one in which it begins.
	for last := true; last && page < len(chunk.pages.Pages); page++ {
		few, err := f.page(ctx, chunk, page, nil)
		if err != nil {
			return false, err
		}
		lo, hi, null := few.List(first)
		if null {
			return true, nil
		}
		for i := lo; i < hi; i++ {
			values, k, err := few.Find(i)
			if err == nil {
				rep, empty := few.Rep(i)
				err = visit(values, k, rep, empty)
			}
			if err != nil {
				return false, err
			}
		}
		last, first = first == few.Lists()-1, -1
	}
	return false, nil
}

// LargestPage returns the stored bytes of the largest page of a column that several rows share, in the first row group.
func (f *File) LargestPage(ctx context.Context, leaf int) (most int64, err error) {
	if len(f.Groups) == 0 {
		return 0, nil
	}
	chunk, err := f.open(ctx, leaf, 0)
	if err != nil {
		return 0, err
	}
	for i, page := range chunk.pages.Pages {
		if chunk.pages.Rows(i) > 1 {
			most = max(most, int64(page.Len))
		}
	}
	return max(most, int64(chunk.pages.Dict.Len)), nil
}
