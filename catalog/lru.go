package catalog

import (
	"container/list"
	"sync"
)

// lru keeps values until their costs together pass a bound; then the least recently used go. A
// value that alone costs more than the bound is not kept. It is safe for concurrent use.
type lru[K comparable, V any] struct {
	mu    sync.Mutex
	max   int64
	used  int64
	order list.List // of *lruEntry, most recently used first
	at    map[K]*list.Element
}

type lruEntry[K comparable, V any] struct {
	key  K
	val  V
	cost int64
}

func newLRU[K comparable, V any](max int64) *lru[K, V] {
	return &lru[K, V]{max: max, at: map[K]*list.Element{}}
}

func (c *lru[K, V]) get(k K) (v V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.at[k]
	if e == nil {
		return v, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*lruEntry[K, V]).val, true
}

// add keeps v, whose memory is cost bytes, and lets go of what that makes too much. lruOverhead is
// added for the entry itself.
func (c *lru[K, V]) add(k K, v V, cost int64) {
	cost += lruOverhead
	if cost > c.max {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.at[k]; e != nil { // another worker was first
		c.drop(e)
	}
	c.at[k] = c.order.PushFront(&lruEntry[K, V]{k, v, cost})
	c.used += cost
	for c.used > c.max {
		c.drop(c.order.Back())
	}
}

func (c *lru[K, V]) drop(e *list.Element) {
	x := c.order.Remove(e).(*lruEntry[K, V])
	delete(c.at, x.key)
	c.used -= x.cost
}

// lruOverhead is about what an entry takes beside its value: the list element, the entry, its place
// in the map.
const lruOverhead = 256
