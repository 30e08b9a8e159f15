package tables

import (
	"context"
	"runtime"
	"sync"

	"github.com/chaski-eo/chaski/format/tables/parquet"
	"github.com/chaski-eo/chaski/internal/crash"
	"github.com/chaski-eo/chaski/internal/lru"
)

// pageCache keeps decoded pages of columns when only some of their rows were requested, because the next request is
// often for rows nearby. To keep such columns as vectors, all their rows would have to be decoded and copied.
type pageCache = lru.Cache[pageKey, heldPart]

// pageKey names one page of one column of one row group, or what it needs beside its pages, where page is chunkPart.
type pageKey struct{ group, leaf, page int }

const chunkPart = -1

// heldPart is a page, or a columnChunk.
type heldPart struct {
	chunk  *columnChunk
	values *parquet.Values
}

// columnChunk is a column of a row group after its page locations were read.
type columnChunk struct {
	pages *parquet.Pages
	dict  *parquet.Values
}

// cost is about how many bytes of memory it takes.
func (c *columnChunk) cost() int64 {
	const location = 24
	size := int64(location * len(c.pages.Pages))
	if c.dict != nil {
		size += int64(c.dict.Cost())
	}
	return size
}

// page is a page on its way from decoding to use.
type page struct {
	first int64 // its first row
	done  chan struct{}
	v     *parquet.Values
	err   error
}

// maxAhead bounds the pages of a column that are decoded ahead of use. A page may take 64 MiB
// (parquet's maxPage), so four take at most 256 MiB.
const maxAhead = 4

// pages calls add with the wanted pages of a column, in order, and with the first row of each. It decodes up to one
// page a processor ahead of add, but no more than maxAhead.
func (p *parquetTable) pages(ctx context.Context, leaf int, add func(v *parquet.Values, first int64) error) error {
	ctx, cancel := context.WithCancel(ctx)
	queue := make(chan *page, min(runtime.GOMAXPROCS(0), maxAhead))
	var running sync.WaitGroup
	// This is deferred before cancel, so it runs after it: cancel ends what still runs.
	defer running.Wait()
	defer cancel()
	var failed error
	running.Go(func() {
		defer close(queue)
		send := func(first int64, decode func() (*parquet.Values, error)) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			ahead := &page{first: first, done: make(chan struct{})}
			select {
			case queue <- ahead:
			case <-ctx.Done():
				return ctx.Err()
			}
			running.Go(func() {
				defer close(ahead.done)
				ahead.err = crash.Call(func() (err error) {
					ahead.v, err = decode()
					return err
				})
			})
			return nil
		}
		failed = crash.Call(func() error { return p.eachPage(ctx, leaf, send) })
	})
	for ready := range queue {
		<-ready.done
		if ready.err != nil {
			return ready.err
		}
		if err := add(ready.v, ready.first); err != nil {
			return err
		}
	}
	return failed
}

// eachPage calls f with the first row of each wanted page of a column, and with a function that decodes the page.
func (p *parquetTable) eachPage(ctx context.Context, leaf int,
	f func(first int64, decode func() (*parquet.Values, error)) error) error {
	var groups []int
	for g := range p.f.Groups {
		if group := &p.f.Groups[g]; group.Rows > 0 && p.wants(group.First, group.First+group.Rows) {
			groups = append(groups, g)
		}
	}
	var next *opening
	defer func() { next.wait() }()
	for k, number := range groups {
		group, now := &p.f.Groups[number], next
		if k == 0 {
			now = p.opening(ctx, number, leaf)
		}
		// Decompressing a dictionary may be most of the work of a row group, so the next one's is read while the
		// pages of this one are decoded.
		if next = nil; k+1 < len(groups) {
			next = p.opening(ctx, groups[k+1], leaf)
		}
		now.wait()
		if now.err != nil {
			return now.err
		}
		file, chunk := now.file, now.chunk
		for i := range chunk.pages.Pages {
			first := group.First + chunk.pages.Pages[i].First
			if !p.wants(first, first+int64(chunk.pages.Rows(i))) {
				continue
			}
			err := f(first, func() (*parquet.Values, error) {
				key := pageKey{number, leaf, i}
				if held, ok := p.cache.Get(key); ok {
					return held.values, nil
				}
				values, err := file.Read(ctx, number, leaf, chunk.pages, i, chunk.dict)
				if err == nil && p.hold {
					p.cache.Add(key, heldPart{values: values}, int64(values.Cost()))
				}
				return values, err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// opening is a column of a row group whose page locations and dictionary are being read.
type opening struct {
	done  chan struct{}
	file  *parquet.File
	chunk *columnChunk
	err   error
}

// opening starts to open a column of a row group, unless it is held.
func (p *parquetTable) opening(ctx context.Context, group, leaf int) *opening {
	opened := &opening{file: p.f}
	if held, ok := p.cache.Get(pageKey{group, leaf, chunkPart}); ok {
		opened.chunk = held.chunk
		return opened
	}
	opened.done = make(chan struct{})
	go func() {
		defer close(opened.done)
		opened.err = crash.Call(func() (err error) {
			opened.file, opened.chunk, err = p.open(ctx, group, leaf)
			return err
		})
	}()
	return opened
}

// wait returns when the column is open.
func (o *opening) wait() {
	if o != nil && o.done != nil {
		<-o.done
	}
}

// open locates the pages of a column in a row group and reads its dictionary. The returned file has the column's bytes
// in memory if they are at most Options.Whole.
func (p *parquetTable) open(ctx context.Context, group, leaf int) (*parquet.File, *columnChunk, error) {
	file, err := p.f.Buffered(ctx, group, leaf, p.o.Whole)
	if err != nil {
		return nil, nil, err
	}
	pages, err := file.Pages(ctx, group, leaf)
	if err != nil {
		return nil, nil, err
	}
	dict, err := file.Dictionary(ctx, group, leaf, pages)
	if err != nil {
		return nil, nil, err
	}
	chunk := &columnChunk{pages, dict}
	if p.hold {
		p.cache.Add(pageKey{group, leaf, chunkPart}, heldPart{chunk: chunk}, chunk.cost())
	}
	return file, chunk, nil
}
