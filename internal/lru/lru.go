// Package lru keeps values within a bound of memory.
package lru

import (
	"container/list"
	"sync"
)

// Cache keeps values until their total cost exceeds a bound, and then drops the least recently used. It
// does not keep a value that costs more than the bound. It is safe for concurrent use.
type Cache[K comparable, V any] struct {
	mu    sync.Mutex // guards the fields below, so used always is the sum of the entries' costs
	max   int64
	used  int64
	order list.List // of *entry, most recently used first
	at    map[K]*list.Element

	evicted func(V) // gets each value for which there is no room; nil: nothing
}

type entry[K comparable, V any] struct {
	key  K
	val  V
	cost int64
}

// New returns a cache of values whose total cost is at most max bytes.
func New[K comparable, V any](max int64) *Cache[K, V] {
	return &Cache[K, V]{max: max, at: map[K]*list.Element{}}
}

// OnEvict has f called with each value for which there is no room. f must not use the cache. It must be called before
// the first Add.
func (c *Cache[K, V]) OnEvict(f func(V)) { c.evicted = f }

// Bound returns the largest total cost.
func (c *Cache[K, V]) Bound() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.max
}

// Raise raises the bound to that many bytes, if it is lower.
func (c *Cache[K, V]) Raise(bound int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.max = max(c.max, bound)
}

// Used returns the total cost of the values that are kept.
func (c *Cache[K, V]) Used() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used
}

// Get returns the value of a key, if it is cached.
func (c *Cache[K, V]) Get(k K) (v V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	elem := c.at[k]
	if elem == nil {
		return v, false
	}
	c.order.MoveToFront(elem)
	return elem.Value.(*entry[K, V]).val, true
}

// Add keeps v, which takes cost bytes, and drops as many values as that needs. Overhead is added for the
// entry itself.
func (c *Cache[K, V]) Add(k K, v V, cost int64) {
	cost += Overhead
	c.mu.Lock()
	defer c.mu.Unlock()
	if elem := c.at[k]; elem != nil { // another worker added it since our Get, or its cost has changed
		c.drop(elem)
	}
	if cost > c.max {
		c.evict(v)
		return
	}
	c.at[k] = c.order.PushFront(&entry[K, V]{k, v, cost})
	c.used += cost
	for c.used > c.max {
		last := c.order.Back()
		c.drop(last)
		c.evict(last.Value.(*entry[K, V]).val)
	}
}

func (c *Cache[K, V]) evict(v V) {
	if c.evicted != nil {
		c.evicted(v)
	}
}

// Remove drops the value of a key.
func (c *Cache[K, V]) Remove(k K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if elem := c.at[k]; elem != nil {
		c.drop(elem)
	}
}

// Forget drops the values whose keys match.
func (c *Cache[K, V]) Forget(match func(K) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, elem := range c.at {
		if match(key) {
			c.drop(elem)
		}
	}
}

func (c *Cache[K, V]) drop(e *list.Element) {
	dropped := c.order.Remove(e).(*entry[K, V])
	delete(c.at, dropped.key)
	c.used -= dropped.cost
}

// Overhead is about how many bytes an entry takes beside its value: the list element (48), the entry,
// the key twice, and its slot in the map.
const Overhead = 256
