// Package heaps has a heap whose items know their places in it.
package heaps

import "container/heap"

// Outside is the place of an item that is in no heap.
const Outside = -1

// Item is an item of a Heap.
type Item[T any] interface {
	// Before reports whether the item comes before another one.
	Before(other T) bool
	// Place returns where the item keeps its place, which the heap sets.
	Place() *int
}

// Heap is a heap of items. The first one comes before all others. The zero value is empty.
type Heap[T Item[T]] []T

// Add adds an item.
func (h *Heap[T]) Add(x T) { heap.Push(h, x) }

// Remove takes out an item, if it is in.
func (h *Heap[T]) Remove(x T) {
	if place := *x.Place(); place != Outside {
		heap.Remove(h, place)
	}
}

// Fix puts an item in, whose order has changed, where it belongs.
func (h *Heap[T]) Fix(x T) { heap.Fix(h, *x.Place()) }

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (h Heap[T]) Len() int           { return len(h) }
func (h Heap[T]) Less(i, j int) bool { return h[i].Before(h[j]) }
func (h Heap[T]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	*h[i].Place(), *h[j].Place() = i, j
}
func (h *Heap[T]) Push(x any) {
	item := x.(T)
	*item.Place() = len(*h)
	*h = append(*h, item)
}
func (h *Heap[T]) Pop() any {
	last := len(*h) - 1
	item := (*h)[last]
	clear((*h)[last:])
	*h = (*h)[:last]
	*item.Place() = Outside
	return item
}
