// Package refcache keeps what is costly to open (containers with their tables, files) from one use to the next.
//
// A Shelf hands a value to as many users as ask for it at a time, and closes it once: when nobody uses it any more and
// it is not kept, because another version of it is there, because it failed, or because there are too many. Watch tells
// versions of files apart.
package refcache

import (
	"container/list"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/chaski-eo/chaski/fault"
)

// Options say what a shelf keeps, and how much of it.
type Options[V any] struct {
	// Max is how many values are kept, MaxBytes how much memory they may take together (0: any). Those in use count,
	// but stay: the bounds hold for what is kept idle.
	Max      int
	MaxBytes int64
	// Bytes says what a value takes; nil for nothing. It is called when the value is given back.
	Bytes func(V) int64
	// Changed reports whether what a value was opened from is another version by now. It is called before a value
	// that is kept is handed out, by several at a time; nil for never.
	Changed func(context.Context, V) bool
	// Close closes a value.
	Close func(V) error
}

// Shelf keeps values by their keys. It is safe for concurrent use. Close it when it is not needed any more.
type Shelf[K comparable, V any] struct {
	o Options[V]

	mu     sync.Mutex
	closed bool
	bytes  int64
	by     map[K]*entry[K, V] // what is kept
	order  list.List          // of *entry, what is kept, used last at the front
}

type entry[K comparable, V any] struct {
	key   K
	ready chan struct{} // closed when v or err is there
	v     V
	err   error
	again bool // who opened it gave up: err says nothing to others

	// Of Shelf.mu:
	refs  int
	kept  *list.Element // nil: it is closed with the last that uses it
	bytes int64
}

// New returns an empty shelf.
func New[K comparable, V any](o Options[V]) *Shelf[K, V] {
	return &Shelf[K, V]{o: o, by: map[K]*entry[K, V]{}}
}

// Lease is a value in use. Give it back.
type Lease[K comparable, V any] struct {
	Value V

	s     *Shelf[K, V]
	e     *entry[K, V]
	given atomic.Bool
}

// Give gives a value back; keep is false for one that failed, which is opened anew for the next user. It may be called
// twice: the second time it does nothing. The error is that of Close, if this was the last user of a value not kept.
func (l *Lease[K, V]) Give(keep bool) error {
	if l.given.Swap(true) {
		return nil
	}
	return l.s.give(l.e, keep)
}

// Sound reports whether a value may be kept after an error of its use: one about what was asked for, or about the one
// who asked, says nothing about the value.
func Sound(err error) bool {
	k := fault.KindOf(err)
	return err == nil || k == fault.NotFound || k == fault.Unsupported ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// Take returns the value of a key: what is kept of it, if that has not changed, else what open returns. Of several users
// at a time, one opens it.
func (s *Shelf[K, V]) Take(ctx context.Context, k K, open func(context.Context) (V, error)) (*Lease[K, V], error) {
	for {
		e, mine := s.find(k)
		if mine {
			if err := s.open(ctx, e, open); err != nil {
				return nil, err
			}
			return &Lease[K, V]{Value: e.v, s: s, e: e}, nil
		}
		select {
		case <-e.ready:
		case <-ctx.Done():
			_ = s.give(e, true)
			return nil, context.Cause(ctx)
		}
		switch {
		case e.err != nil && e.again:
			continue
		case e.err != nil:
			return nil, e.err
		case s.o.Changed != nil && s.o.Changed(ctx, e.v):
			if err := ctx.Err(); err != nil { // who cannot look does not know
				_ = s.give(e, true)
				return nil, context.Cause(ctx)
			}
			_ = s.give(e, false) // it was only read
			continue
		}
		return &Lease[K, V]{Value: e.v, s: s, e: e}, nil
	}
}

// find returns the entry of a key, with one user more, and whether that one is to open it.
func (s *Shelf[K, V]) find(k K) (e *entry[K, V], mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.by[k]; e != nil {
		e.refs++
		return e, false
	}
	e = &entry[K, V]{key: k, ready: make(chan struct{}), refs: 1}
	if !s.closed {
		s.by[k] = e
		e.kept = s.order.PushFront(e)
	}
	return e, true
}

// open opens the value of a new entry. One that fails is not kept.
func (s *Shelf[K, V]) open(ctx context.Context, e *entry[K, V], open func(context.Context) (V, error)) error {
	err := errors.New("shelf: open panicked")
	defer func() {
		if err != nil {
			e.err, e.again = err, ctx.Err() != nil
			s.mu.Lock()
			s.drop(e)
			s.mu.Unlock()
		}
		close(e.ready)
	}()
	e.v, err = open(ctx)
	return err
}

// give takes a value back from one user.
func (s *Shelf[K, V]) give(e *entry[K, V], keep bool) error {
	var bytes int64
	select {
	case <-e.ready:
		if e.err == nil && s.o.Bytes != nil && keep {
			bytes = s.o.Bytes(e.v)
		}
	default: // it is being opened, and this user waits no longer
	}
	s.mu.Lock()
	e.refs--
	if !keep {
		s.drop(e)
	}
	if e.kept != nil {
		s.order.MoveToFront(e.kept)
		s.bytes += bytes - e.bytes
		e.bytes = bytes
	}
	out := s.trim()
	if e.refs == 0 && e.kept == nil && !slices.Contains(out, e) { // one that did not open keeps its first user
		out = append(out, e)
	}
	s.mu.Unlock()
	return s.close(out)
}

// drop lets an entry be kept no longer. s.mu is held.
func (s *Shelf[K, V]) drop(e *entry[K, V]) {
	if e.kept == nil {
		return
	}
	s.order.Remove(e.kept)
	e.kept = nil
	s.bytes -= e.bytes
	delete(s.by, e.key)
}

// trim drops those idle for longest until the bounds hold, and returns them. s.mu is held.
func (s *Shelf[K, V]) trim() (out []*entry[K, V]) {
	for at := s.order.Back(); at != nil && s.over(); {
		e := at.Value.(*entry[K, V])
		at = at.Prev()
		if e.refs == 0 {
			s.drop(e)
			out = append(out, e)
		}
	}
	return out
}

func (s *Shelf[K, V]) over() bool {
	return s.order.Len() > s.o.Max || s.o.MaxBytes > 0 && s.bytes > s.o.MaxBytes
}

// close closes values, outside of the lock.
func (s *Shelf[K, V]) close(out []*entry[K, V]) error {
	var errs []error
	for _, e := range out {
		errs = append(errs, s.o.Close(e.v))
	}
	return errors.Join(errs...)
}

// Drop lets the value of a key be kept no longer: it is closed now, or by the last that uses it.
func (s *Shelf[K, V]) Drop(k K) error {
	s.mu.Lock()
	e := s.by[k]
	var out []*entry[K, V]
	if e != nil {
		if s.drop(e); e.refs == 0 {
			out = append(out, e)
		}
	}
	s.mu.Unlock()
	return s.close(out)
}

// Len returns how many values are kept.
func (s *Shelf[K, V]) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.order.Len()
}

// Bytes returns what the values that are kept take together, as far as that was asked.
func (s *Shelf[K, V]) Bytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}

// Close closes what is idle; what is in use is closed when it is given back. Afterwards nothing is kept.
func (s *Shelf[K, V]) Close() error {
	s.mu.Lock()
	s.closed = true
	var out []*entry[K, V]
	for _, e := range s.by {
		if s.drop(e); e.refs == 0 {
			out = append(out, e)
		}
	}
	s.mu.Unlock()
	return s.close(out)
}
