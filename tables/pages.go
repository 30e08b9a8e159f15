package tables

import (
	"context"
	"runtime"
	"sync"

	"github.com/chaski-eo/chaski/internal/crash"
	"github.com/chaski-eo/chaski/tables/parquet"
)

// held keeps decoded pages of columns when only some of their rows were requested, because the next request is often
// for rows nearby. To keep such columns as vectors, all their rows would have to be decoded and copied. It is safe for
// concurrent use.
type held struct {
	mu     sync.Mutex
	chunks map[place]*columnChunk
	gone   map[int]bool // leaves that were dropped: a reader that still decodes their pages must not add them again
	bytes  int64
}

func newHeld() *held { return &held{chunks: map[place]*columnChunk{}, gone: map[int]bool{}} }

// place names one column of one row group.
type place struct{ group, leaf int }

// columnChunk is a column of a row group after its page locations were read.
type columnChunk struct {
	pages  *parquet.Pages
	dict   *parquet.Values
	values []*parquet.Values // by the number of the page; nil: not held
}

func (h *held) chunk(at place) *columnChunk {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.chunks[at]
}

func (h *held) page(c *columnChunk, i int) *parquet.Values {
	h.mu.Lock()
	defer h.mu.Unlock()
	return c.values[i]
}

// add keeps page i of a chunk, unless all kept pages would then take more than limit bytes.
func (h *held) add(at place, c *columnChunk, i int, v *parquet.Values, limit int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	cost := int64(v.Cost())
	if first := h.chunks[at]; first == nil {
		if c.dict != nil {
			cost += int64(c.dict.Cost())
		}
	} else if c = first; c.values[i] != nil {
		return
	}
	if h.bytes+cost > limit || h.gone[at.leaf] {
		return
	}
	h.bytes += cost
	h.chunks[at], c.values[i] = c, v
}

// rows returns how many rows of a column are kept.
func (h *held) rows(leaf int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for place, columnChunk := range h.chunks {
		if place.leaf != leaf {
			continue
		}
		for _, v := range columnChunk.values {
			if v != nil {
				n += v.Len()
			}
		}
	}
	return n
}

// drop forgets the pages of a column that is now in memory as a vector.
func (h *held) drop(leaf int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gone[leaf] = true
	for place, columnChunk := range h.chunks {
		if place.leaf != leaf {
			continue
		}
		if columnChunk.dict != nil {
			h.bytes -= int64(columnChunk.dict.Cost())
		}
		for _, v := range columnChunk.values {
			if v != nil {
				h.bytes -= int64(v.Cost())
			}
		}
		delete(h.chunks, place)
	}
}

// page is a page on its way from decoding to use.
type page struct {
	first int64 // its first row
	done  chan struct{}
	v     *parquet.Values
	err   error
}

// maxAhead bounds the pages of a column that are decoded ahead of use. A page may take 64 MiB
// (parquet's maxPage), so that four take at most 256 MiB.
const maxAhead = 4

// pages calls add with the wanted pages of a column, in order, and with the first row of each. It decodes up to one
// page a processor ahead of add, but no more than maxAhead.
func (p *parquetTable) pages(ctx context.Context, leaf int, add func(v *parquet.Values, first int64) error) error {
	ctx, cancel := context.WithCancel(ctx)
	queue := make(chan *page, min(runtime.GOMAXPROCS(0), maxAhead))
	var running sync.WaitGroup
	defer running.Wait() // after cancel, which ends what runs: deferred calls run last to first
	defer cancel()
	var failed error
	running.Go(func() {
		defer close(queue)
		send := func(first int64, decode func() (*parquet.Values, error)) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			pg := &page{first: first, done: make(chan struct{})}
			select {
			case queue <- pg:
			case <-ctx.Done():
				return ctx.Err()
			}
			running.Go(func() {
				defer close(pg.done)
				pg.err = crash.Call(func() (err error) {
					pg.v, err = decode()
					return err
				})
			})
			return nil
		}
		failed = crash.Call(func() error { return p.eachPage(ctx, leaf, send) })
	})
	for pg := range queue {
		<-pg.done
		if pg.err != nil {
			return pg.err
		}
		if err := add(pg.v, pg.first); err != nil {
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
	for k, g := range groups {
		group, key := &p.f.Groups[g], place{g, leaf}
		now := next
		if k == 0 {
			now = p.opening(ctx, key)
		}
		if next = nil; k+1 < len(groups) {
			next = p.opening(ctx, place{groups[k+1], leaf})
		}
		now.wait()
		if now.err != nil {
			return now.err
		}
		file, columnChunk := now.file, now.chunk
		for i := range columnChunk.pages.Pages {
			first := group.First + columnChunk.pages.Pages[i].First
			if !p.wants(first, first+int64(columnChunk.pages.Rows(i))) {
				continue
			}
			err := f(first, func() (*parquet.Values, error) {
				values := p.held.page(columnChunk, i)
				if values != nil {
					return values, nil
				}
				values, err := file.Read(ctx, g, leaf, columnChunk.pages, i, columnChunk.dict)
				if err == nil && p.hold {
					p.held.add(key, columnChunk, i, values, p.o.MaxBytes)
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
// Decompressing a dictionary may be most of the work of a row group, so the next row group's
// dictionary is read while the pages of this one are decoded.
type opening struct {
	done  chan struct{}
	file  *parquet.File
	chunk *columnChunk
	err   error
}

// opening starts to open a column of a row group, unless its pages are held.
func (p *parquetTable) opening(ctx context.Context, at place) *opening {
	o := &opening{file: p.f, chunk: p.held.chunk(at)}
	if o.chunk != nil {
		return o
	}
	o.done = make(chan struct{})
	go func() {
		defer close(o.done)
		o.err = crash.Call(func() (err error) {
			o.file, o.chunk, err = p.open(ctx, at)
			return err
		})
	}()
	return o
}

// wait returns when the column is open.
func (o *opening) wait() {
	if o != nil && o.done != nil {
		<-o.done
	}
}

// open locates the pages of a column in a row group and reads its dictionary. The returned file has the column's bytes
// in memory if they are at most Options.Whole.
func (p *parquetTable) open(ctx context.Context, at place) (*parquet.File, *columnChunk, error) {
	file, err := p.f.Buffered(ctx, at.group, at.leaf, p.o.Whole)
	if err != nil {
		return nil, nil, err
	}
	pages, err := file.Pages(ctx, at.group, at.leaf)
	if err != nil {
		return nil, nil, err
	}
	dict, err := file.Dictionary(ctx, at.group, at.leaf, pages)
	if err != nil {
		return nil, nil, err
	}
	return file, &columnChunk{pages, dict, make([]*parquet.Values, len(pages.Pages))}, nil
}
