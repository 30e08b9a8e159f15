// Package refcache is a reference-counted cache of values that are expensive to open, such as files, or containers
// with their tables.
//
// Any number of users share one value of a Cache. The value is closed exactly once: when it is no longer cached and its
// last user releases it. It leaves the cache when a newer version exists, when a user reports that it failed, or when
// the cache is full. Watch detects new versions of files and remote objects.
package refcache

import (
	"container/list"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/invariants"
)

// Options configure a cache.
type Options[V any] struct {
	// MaxEntries and MaxBytes limit the number of cached values and their memory. MaxBytes 0 means no limit.
	// Values in use count but are never evicted, so a cache may exceed its limits while they are in use.
	MaxEntries int
	MaxBytes   int64
	// SizeOf returns the memory of a value in bytes; nil counts no memory. It is called at each release, since a value
	// may grow while it is used.
	SizeOf func(V) int64
	// Stale reports whether the object that a value was opened from has changed since. It is called before a cached
	// value is handed out, by several goroutines at a time; nil means that values never become stale.
	Stale func(context.Context, V) bool
	// Close closes a value.
	Close func(V) error
}

// Cache holds values by key and counts their users. It is safe for concurrent use.
type Cache[K comparable, V any] struct {
	options Options[V]

	// mu guards the fields below, and refs, element and bytes of each entry. Values are opened, checked and closed
	// without it, because each of these may wait for the network.
	mu      sync.Mutex
	closed  bool
	bytes   int64
	entries map[K]*cacheEntry[K, V]
	lru     list.List // the same entries, the most recently used first
}

type cacheEntry[K comparable, V any] struct {
	key      K
	opened   chan struct{} // closed when value or err is set
	value    V
	err      error
	canceled bool // the user that opened it gave up, so err must not reach the others

	refs    int           // users; guarded by Cache.mu, like the fields below
	element *list.Element // the place in Cache.lru; nil once evicted: the last user closes the value
	bytes   int64
}

// New returns an empty cache.
func New[K comparable, V any](o Options[V]) *Cache[K, V] {
	return &Cache[K, V]{options: o, entries: map[K]*cacheEntry[K, V]{}}
}

// Lease is one user's hold on a value. Release it after use.
type Lease[K comparable, V any] struct {
	Value V

	cache    *Cache[K, V]
	entry    *cacheEntry[K, V]
	released atomic.Bool
}

// Release ends the use of a value. If keep is false the value leaves the cache, and the next user opens a new one. The
// error comes from closing the value, which happens here if this was the last user of an evicted value. Further calls
// do nothing.
func (l *Lease[K, V]) Release(keep bool) error {
	if l.released.Swap(true) {
		return nil
	}
	return l.cache.release(l.entry, keep)
}

// Share returns another lease of the value, also of one that has left the cache. l may be released, but the caller
// needs a lease of the value that is not.
func (l *Lease[K, V]) Share() *Lease[K, V] {
	l.cache.mu.Lock()
	defer l.cache.mu.Unlock()
	l.entry.refs++
	return &Lease[K, V]{Value: l.Value, cache: l.cache, entry: l.entry}
}

// Reusable reports whether a value may stay cached after its use returned err. Errors about the request (an unknown
// name, an unsupported option) or about the caller (canceled, out of time) say nothing about the value.
func Reusable(err error) bool {
	k := fault.KindOf(err)
	return err == nil || k == fault.NotFound || k == fault.Unsupported ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// Acquire returns the value of a key: the cached one unless it is stale, otherwise the one that open returns. If
// several users ask for a missing value at a time, one of them opens it and the others wait.
func (c *Cache[K, V]) Acquire(ctx context.Context, k K, open func(context.Context) (V, error)) (*Lease[K, V], error) {
	for {
		entry, opens := c.find(k)
		if opens {
			if err := c.open(ctx, entry, open); err != nil {
				return nil, err
			}
			return &Lease[K, V]{Value: entry.value, cache: c, entry: entry}, nil
		}
		select {
		case <-entry.opened:
		case <-ctx.Done():
			_ = c.release(entry, true)
			return nil, context.Cause(ctx)
		}
		switch {
		case entry.err != nil && entry.canceled:
			continue
		case entry.err != nil:
			return nil, entry.err
		case c.options.Stale != nil && c.options.Stale(ctx, entry.value):
			// Stale may say so only because ctx ended before it had its answer. The value must not be evicted then:
			// others use it.
			if err := ctx.Err(); err != nil {
				_ = c.release(entry, true)
				return nil, context.Cause(ctx)
			}
			// The value was only read, so an error of closing it loses nothing.
			_ = c.release(entry, false)
			continue
		}
		return &Lease[K, V]{Value: entry.value, cache: c, entry: entry}, nil
	}
}

// find returns the entry of a key and counts one more user. opens is true if the entry is new: the caller opens it.
func (c *Cache[K, V]) find(k K) (e *cacheEntry[K, V], opens bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[k]; e != nil {
		e.refs++
		return e, false
	}
	e = &cacheEntry[K, V]{key: k, opened: make(chan struct{}), refs: 1}
	if !c.closed {
		c.entries[k] = e
		e.element = c.lru.PushFront(e)
	}
	return e, true
}

// open opens the value of a new entry. If it fails, the entry leaves the cache.
func (c *Cache[K, V]) open(ctx context.Context, e *cacheEntry[K, V], open func(context.Context) (V, error)) error {
	// The error stands if open panics: without it waiting users would get a zero value.
	err := errors.New("refcache: open panicked")
	defer func() {
		if err != nil {
			e.err, e.canceled = err, ctx.Err() != nil
			c.mu.Lock()
			c.evict(e)
			c.mu.Unlock()
		}
		// Waiting users read e without the lock after this, and a canceled entry must be gone from the cache by then:
		// otherwise they would find it again and spin.
		close(e.opened)
	}()
	e.value, err = open(ctx)
	return err
}

// release takes one user off an entry, evicts entries that exceed the limits, and closes evicted ones without users.
func (c *Cache[K, V]) release(e *cacheEntry[K, V], keep bool) error {
	var bytes int64
	select {
	case <-e.opened:
		if e.err == nil && c.options.SizeOf != nil && keep {
			bytes = c.options.SizeOf(e.value)
		}
	default:
		// A user that no longer waits for the value releases it while another one opens it: it has no size yet.
	}
	c.mu.Lock()
	e.refs--
	invariants.Check(e.refs >= 0, "a value of the cache is released more often than it was acquired")
	if !keep {
		c.evict(e)
	}
	if e.element != nil {
		c.lru.MoveToFront(e.element)
		c.bytes += bytes - e.bytes
		e.bytes = bytes
	}
	unused := c.trim()
	// trim may have evicted e itself, which must not be closed twice. An entry that failed to open is never closed:
	// the user that opened it has no lease and stays counted.
	if e.refs == 0 && e.element == nil && !slices.Contains(unused, e) {
		unused = append(unused, e)
	}
	c.mu.Unlock()
	return c.close(unused)
}

// evict removes an entry from the cache. c.mu is held.
func (c *Cache[K, V]) evict(e *cacheEntry[K, V]) {
	if e.element == nil {
		return
	}
	c.lru.Remove(e.element)
	e.element = nil
	c.bytes -= e.bytes
	delete(c.entries, e.key)
}

// trim evicts unused entries, the least recently used first, until the limits hold. The caller closes them. c.mu is
// held.
func (c *Cache[K, V]) trim() (unused []*cacheEntry[K, V]) {
	for elem := c.lru.Back(); elem != nil && c.full(); {
		held := elem.Value.(*cacheEntry[K, V])
		// The next one is found before evict, since that takes the element out of the list.
		elem = elem.Prev()
		if held.refs == 0 {
			c.evict(held)
			unused = append(unused, held)
		}
	}
	return unused
}

func (c *Cache[K, V]) full() bool {
	return c.lru.Len() > c.options.MaxEntries || c.options.MaxBytes > 0 && c.bytes > c.options.MaxBytes
}

// close closes evicted values. c.mu is not held, because closing may take long.
func (c *Cache[K, V]) close(unused []*cacheEntry[K, V]) error {
	var errs []error
	for _, e := range unused {
		errs = append(errs, c.options.Close(e.value))
	}
	return errors.Join(errs...)
}

// Evict removes the value of a key from the cache. It is closed now, or by its last user.
func (c *Cache[K, V]) Evict(k K) error {
	c.mu.Lock()
	held := c.entries[k]
	var unused []*cacheEntry[K, V]
	if held != nil {
		if c.evict(held); held.refs == 0 {
			unused = append(unused, held)
		}
	}
	c.mu.Unlock()
	return c.close(unused)
}

// Len returns the number of cached values.
func (c *Cache[K, V]) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lru.Len()
}

// Bytes returns the memory of the cached values, as of their last release.
func (c *Cache[K, V]) Bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes
}

// Close empties the cache and closes the values that are not in use. The others are closed by their last user. A closed
// cache still opens values, but keeps none.
func (c *Cache[K, V]) Close() error {
	c.mu.Lock()
	c.closed = true
	var unused []*cacheEntry[K, V]
	for _, e := range c.entries {
		if c.evict(e); e.refs == 0 {
			unused = append(unused, e)
		}
	}
	c.mu.Unlock()
	return c.close(unused)
}
