package remote

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/chaski-eo/chaski/fault"
)

// errNoRanges is the failure of a server that answers range requests with whole objects.
type errNoRanges struct{ size int64 } // size of the object, or -1

func (e *errNoRanges) Error() string {
	if e.size < 0 {
		return "the server does not serve byte ranges"
	}
	return fmt.Sprintf("the server does not serve byte ranges, and the object has %d bytes", e.size)
}

// readsWhole reports whether a request failed because the server has no ranges, and the object may
// be read as a whole instead. If it is too large for that, the error states the limit.
func (o *Opener) readsWhole(err error) (size int64, ok bool, _ error) {
	var e *errNoRanges
	var f *fault.Error
	switch {
	case !errors.As(err, &e):
		return 0, false, err
	case e.size >= 1 && e.size <= o.options.MaxWhole:
		return e.size, true, nil
	case errors.As(err, &f) && e.size > 0 && o.options.MaxWhole > 0:
		f.Msg = fmt.Sprintf("%v, more than the %d that are read as a whole", e, o.options.MaxWhole)
	}
	return 0, false, err
}

// wholes caches the most recently used whole objects of servers without ranges, within a limit on
// their total size.
type wholes struct {
	mu    sync.Mutex
	bytes int64
	by    map[name]*list.Element // the values are *whole
	lru   list.List              // the least recently used one first
	// Holds a token while an object is fetched, so that at most one is in memory beyond the limit.
	turn chan struct{}
}

// whole holds all bytes of an object as of a time.
type whole struct {
	x   *object // the object that it was read for
	at  time.Time
	tag Tag
	b   []byte
}

// get returns all bytes of an object, or nil if they are not cached.
func (w *wholes) get(x *object, fresh time.Duration) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	elem := w.by[x.name]
	if elem == nil {
		return nil
	}
	h := elem.Value.(*whole)
	if h.x != x && (time.Since(h.at) >= fresh || x.check(&Answer{Size: int64(len(h.b)), Tag: h.tag}) != nil) {
		w.remove(elem)
		return nil
	}
	w.lru.MoveToBack(elem)
	return h.b
}

// room evicts objects until n more bytes fit into the limit.
func (w *wholes) room(n, bound int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.bytes+n > bound && w.lru.Len() > 0 {
		w.remove(w.lru.Front())
	}
}

func (w *wholes) add(h *whole) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if old := w.by[h.x.name]; old != nil {
		w.remove(old)
	}
	if w.by == nil {
		w.by = map[name]*list.Element{}
	}
	w.by[h.x.name] = w.lru.PushBack(h)
	w.bytes += int64(len(h.b))
}

func (w *wholes) remove(e *list.Element) {
	h := w.lru.Remove(e).(*whole)
	delete(w.by, h.x.name)
	w.bytes -= int64(len(h.b))
}

// wholeObject returns all bytes of an object of a server without ranges. If they were evicted, it
// reads them again.
func (o *Opener) wholeObject(ctx context.Context, x *object) ([]byte, error) {
	if b := o.wholes.get(x, o.options.Fresh); b != nil {
		return b, nil
	}
	select {
	case o.wholes.turn <- struct{}{}:
		defer func() { <-o.wholes.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if b := o.wholes.get(x, o.options.Fresh); b != nil { // another caller has read it meanwhile
		return b, nil
	}
	o.wholes.room(x.size, o.options.WholeBytes)
	h := &whole{x: x, at: time.Now()}
	err := o.get(ctx, x.name, Range{0, x.size}, x.currentTag(), func(a *Answer) error {
		if err := x.check(a); err != nil {
			return err
		}
		if h.b == nil {
			h.b = make([]byte, x.size) // MaxWhole limits it
		}
		h.tag = a.Tag
		return o.readBody(ctx, a, h.b)
	})
	var e *errNoRanges
	if errors.As(err, &e) { // it is longer than expected
		err = place{x.uri, "byte range",
			0}.fault(Fail(Changed, fmt.Errorf("it has %d bytes, expected %d", e.size, x.size)), 1)
	}
	if err != nil {
		return nil, err
	}
	o.wholes.add(h)
	return h.b, nil
}
