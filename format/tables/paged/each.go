package paged

import (
	"context"
	"runtime"
	"sort"
	"sync"

	"github.com/chaski-eo/chaski/format/tables/parquet"
	"github.com/chaski-eo/chaski/internal/crash"
)

// Span is rows Lo to Hi, Hi not included.
type Span struct{ Lo, Hi int64 }

// Spans are some rows of a file, in order; nil are all.
type Spans []Span

// from returns the spans that end after a row.
func (s Spans) from(row int64) Spans {
	return s[sort.Search(len(s), func(i int) bool { return s[i].Hi > row }):]
}

// some reports whether any of the rows lo to hi is among them.
func (s Spans) some(lo, hi int64) bool {
	after := s.from(lo)
	return s == nil || len(after) > 0 && after[0].Lo < hi
}

// of returns which of the n rows from first on are among s, which is not nil, counted from first.
func (s Spans) of(first, n int64) (rows []int32) {
	for _, span := range s.from(first) {
		if span.Lo >= first+n {
			break
		}
		for r := max(span.Lo-first, 0); r < min(span.Hi-first, n); r++ {
			rows = append(rows, int32(r))
		}
	}
	return rows
}

// Rows returns the rows of spans. If there are no rows, the list is empty instead of nil.
func (s Spans) Rows() []int {
	count := int64(0)
	for _, span := range s {
		count += span.Hi - span.Lo
	}
	rows := make([]int, 0, count)
	for _, span := range s {
		for row := span.Lo; row < span.Hi; row++ {
			rows = append(rows, int(row))
		}
	}
	return rows
}

// Scan says which rows of a column to read, and how.
type Scan struct {
	Rows Spans
	// Keep keeps decoded pages in the cache, because the next scan is often for rows nearby. Rows must not be nil.
	Keep bool
	// Ahead reads the dictionary of the next row group on another goroutine: decompressing it may be most of the work.
	Ahead bool
}

// Decode returns the wanted values of a page.
type Decode func(ctx context.Context) (*parquet.Values, error)

// Each calls visit, in order, with the first row of each page of a column without lists that has wanted rows, and with
// a function that decodes these.
func (f *File) Each(ctx context.Context, leaf int, s Scan, visit func(first int64, decode Decode) error) error {
	var groups []int
	for g := range f.Groups {
		if group := &f.Groups[g]; group.Rows > 0 && s.Rows.some(group.First, group.First+group.Rows) {
			groups = append(groups, g)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	var ahead []*opening // and the group at hand, from its front on
	defer func() {
		cancel()
		for _, o := range ahead {
			o.wait()
		}
	}()
	held := int64(0) // the bytes of ahead
	for k, number := range groups {
		for k+len(ahead) < len(groups) && len(ahead) <= f.groupsAhead(s, k) {
			next := groups[k+len(ahead)]
			bytes := f.Stored(next, leaf)
			if f.Far && len(ahead) > 0 && held+bytes > farBytes {
				break
			}
			ahead, held = append(ahead, f.opening(ctx, leaf, next, s)), held+bytes
		}
		now := ahead[0]
		now.wait()
		ahead, held = ahead[1:], held-f.Stored(number, leaf)
		if now.err != nil {
			return now.err
		}
		for i, page := range now.pages.Pages {
			first, n := f.Groups[number].First+page.First, int64(now.pages.Rows(i))
			if !s.Rows.some(first, first+n) {
				continue
			}
			err := visit(first, func(ctx context.Context) (*parquet.Values, error) {
				var rows []int32
				if s.Rows != nil {
					rows = s.Rows.of(first, n)
				}
				return f.decode(ctx, now, i, rows)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Scans of remote files request columns of up to farGroups row groups at a time, each whole, if they take at most
// farBytes together. With a round trip of 20 ms these are 800 requests a second.
const (
	farGroups = 16
	farBytes  = 8 << 20
)

// groupsAhead returns how many row groups are opened ahead when k have been read. Of remote files they double with
// each, because many scans end at the first row.
func (f *File) groupsAhead(s Scan, k int) int {
	switch {
	case f.Far:
		return min(1<<min(k, 8), farGroups) - 1
	case s.Ahead:
		return 1
	}
	return 0
}

// opening is a column of a row group whose page locations, and dictionary unless pages are kept, are being read.
type opening struct {
	chunk
	keep bool
	dict *parquet.Values
	done chan struct{} // nil: it is open
	err  error
}

// opening starts to open a column of a row group.
func (f *File) opening(ctx context.Context, leaf, group int, s Scan) *opening {
	opened := &opening{keep: s.Keep}
	open := func() (err error) {
		if s.Keep || f.oneRead == 0 && !f.Far {
			opened.chunk, err = f.open(ctx, leaf, group)
		} else {
			opened.chunk = chunk{key: pageKey{file: f.number, column: leaf, group: group}}
			whole := f.oneRead
			if f.Far {
				whole = max(whole, farBytes)
			}
			err = f.locate(ctx, &opened.chunk, whole)
		}
		if err == nil && !s.Keep {
			opened.dict, err = opened.file.Dictionary(ctx, group, leaf, opened.pages)
		}
		return err
	}
	if !s.Ahead && !f.Far {
		opened.err = open()
		return opened
	}
	opened.done = make(chan struct{})
	go func() {
		defer close(opened.done)
		opened.err = crash.Call(open)
	}()
	return opened
}

// wait returns when the column is open.
func (o *opening) wait() {
	if o != nil && o.done != nil {
		<-o.done
	}
}

// decode returns rows of a page, all of nil.
func (f *File) decode(ctx context.Context, o *opening, page int, rows []int32) (values *parquet.Values, err error) {
	if o.keep {
		few, err := f.page(ctx, o.chunk, page, nil)
		if err != nil {
			return nil, err
		}
		return few.Take(rows)
	}
	if few := f.Cache.page(o.key.numbered(page)); few != nil {
		values = few.Values()
	}
	if values == nil {
		values, err = o.file.Read(ctx, o.key.group, o.key.column, o.pages, page, o.dict)
	}
	if err == nil && rows != nil {
		values = values.Take(rows)
	}
	return values, err
}

// page is a page on its way from decoding to use.
type page struct {
	done chan struct{}
	v    *parquet.Values
	err  error
}

// MaxAhead bounds the pages of a column that are decoded ahead of use. A page may take 64 MiB
// (parquet's maxPage), so that four take at most 256 MiB.
const MaxAhead = 4

// InOrder calls add with the wanted values of the pages of a column, in order. It decodes up to one page a processor
// ahead of add, but no more than MaxAhead.
func (f *File) InOrder(ctx context.Context, leaf int, s Scan, add func(v *parquet.Values) error) error {
	ctx, cancel := context.WithCancel(ctx)
	queue := make(chan *page, min(runtime.GOMAXPROCS(0), MaxAhead))
	var running sync.WaitGroup
	// This is deferred before cancel, so that it runs after it: cancel ends what still runs.
	defer running.Wait()
	defer cancel()
	var failed error
	running.Go(func() {
		defer close(queue)
		send := func(_ int64, decode Decode) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			ahead := &page{done: make(chan struct{})}
			select {
			case queue <- ahead:
			case <-ctx.Done():
				return ctx.Err()
			}
			running.Go(func() {
				defer close(ahead.done)
				ahead.err = crash.Call(func() (err error) {
					ahead.v, err = decode(ctx)
					return err
				})
			})
			return nil
		}
		failed = crash.Call(func() error { return f.Each(ctx, leaf, s, send) })
	})
	for ready := range queue {
		<-ready.done
		if ready.err != nil {
			return ready.err
		}
		if err := add(ready.v); err != nil {
			return err
		}
	}
	return failed
}
