package tables

import (
	"context"
	"runtime"
	"sync"

	"github.com/chaski-eo/chaski/tables/parquet"
)

// held are decoded pages of columns of which a few rows were asked for: others may be next. As vectors the whole
// columns would have to be decoded, and copied. It is safe for concurrent use.
type held struct {
	mu     sync.Mutex
	chunks map[place]*columnChunk
	gone   map[int]bool // leaves that were dropped: who still reads their pages adds none
	bytes  int64
}

func newHeld() *held { return &held{chunks: map[place]*columnChunk{}, gone: map[int]bool{}} }

// place is a column of a row group.
type place struct{ group, leaf int }

// columnChunk is a column of a row group whose pages are known.
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

// add holds page i of a chunk, as long as all together have no more than limit bytes.
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

// rows returns how many rows of a column are held.
func (h *held) rows(leaf int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for at, c := range h.chunks {
		if at.leaf != leaf {
			continue
		}
		for _, v := range c.values {
			if v != nil {
				n += v.Len()
			}
		}
	}
	return n
}

// drop lets go of a column, which is in memory as a whole.
func (h *held) drop(leaf int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gone[leaf] = true
	for at, c := range h.chunks {
		if at.leaf != leaf {
			continue
		}
		if c.dict != nil {
			h.bytes -= int64(c.dict.Cost())
		}
		for _, v := range c.values {
			if v != nil {
				h.bytes -= int64(v.Cost())
			}
		}
		delete(h.chunks, at)
	}
}

// page is a page that is being decoded.
type page struct {
	first int64 // its first row
	done  chan struct{}
	v     *parquet.Values
	err   error
}

// maxAhead bounds the pages of a column that are decoded ahead of use: each may be large.
const maxAhead = 4

// pages calls add with the pages of a column that are wanted, in order, and the first row of each. As many
// as there are processors, but no more than maxAhead, are decoded at the same time, ahead of it.
func (p *parquetTable) pages(ctx context.Context, leaf int, add func(v *parquet.Values, first int64) error) error {
	ctx, cancel := context.WithCancel(ctx)
	queue := make(chan *page, min(runtime.GOMAXPROCS(0), maxAhead))
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	var failed error
	running.Go(func() {
		defer close(queue)
		failed = p.eachPage(ctx, leaf, func(first int64, decode func() (*parquet.Values, error)) error {
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
				pg.v, pg.err = decode()
			})
			return nil
		})
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

// eachPage calls f with the pages of a column that are wanted: the first row of each, and what decodes it.
func (p *parquetTable) eachPage(ctx context.Context, leaf int, f func(first int64, decode func() (*parquet.Values, error)) error) error {
	var groups []int
	for g := range p.f.Groups {
		if group := &p.f.Groups[g]; group.Rows > 0 && p.wants(group.First, group.First+group.Rows) {
			groups = append(groups, g)
		}
	}
	var next *opening
	defer func() { next.wait() }()
	for k, g := range groups {
		group, at := &p.f.Groups[g], place{g, leaf}
		now := next
		if k == 0 {
			now = p.opening(ctx, at)
		}
		if next = nil; k+1 < len(groups) {
			next = p.opening(ctx, place{groups[k+1], leaf})
		}
		now.wait()
		if now.err != nil {
			return now.err
		}
		file, c := now.file, now.chunk
		for i := range c.pages.Pages {
			first := group.First + c.pages.Pages[i].First
			if !p.wants(first, first+int64(c.pages.Rows(i))) {
				continue
			}
			err := f(first, func() (*parquet.Values, error) {
				v := p.held.page(c, i)
				if v != nil {
					return v, nil
				}
				v, err := file.Read(ctx, g, leaf, c.pages, i, c.dict)
				if err == nil && p.hold {
					p.held.add(at, c, i, v, p.o.MaxBytes)
				}
				return v, err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// opening is a column of a row group whose pages and dictionary are being read. A dictionary may be most of what there is
// to decompress, so that of the next row group is read while pages of this one are.
type opening struct {
	done  chan struct{}
	file  *parquet.File
	chunk *columnChunk
	err   error
}

// opening begins to open a column of a row group, unless it is held.
func (p *parquetTable) opening(ctx context.Context, at place) *opening {
	o := &opening{file: p.f, chunk: p.held.chunk(at)}
	if o.chunk != nil {
		return o
	}
	o.done = make(chan struct{})
	go func() {
		defer close(o.done)
		o.file, o.chunk, o.err = p.open(ctx, at)
	}()
	return o
}

// wait waits until it is open.
func (o *opening) wait() {
	if o != nil && o.done != nil {
		<-o.done
	}
}

// open finds the pages of a column in a row group, and reads its dictionary. The file that it returns has the
// column's bytes in memory, if they are not too many.
func (p *parquetTable) open(ctx context.Context, at place) (*parquet.File, *columnChunk, error) {
	f, err := p.f.Buffered(ctx, at.group, at.leaf, p.o.Whole)
	if err != nil {
		return nil, nil, err
	}
	pages, err := f.Pages(ctx, at.group, at.leaf)
	if err != nil {
		return nil, nil, err
	}
	dict, err := f.Dictionary(ctx, at.group, at.leaf, pages)
	if err != nil {
		return nil, nil, err
	}
	return f, &columnChunk{pages, dict, make([]*parquet.Values, len(pages.Pages))}, nil
}
