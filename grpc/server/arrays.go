package server

import (
	"cmp"
	"sync"
	"time"

	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/resources"
)

// Bounds of arrays in shared memory.
const (
	// minArray is the least array that is lent, in bytes, since a lease wakes a thread of the client. A read of 256 KiB
	// takes 0.8 times the processor time that it takes in parts, one of 768 KiB 0.55 times.
	minArray = 256 << 10
	// maxIdleArrays bounds the segments that wait for the next reads. A client that reads in a loop uses two by turns,
	// since it drops an array when it has the next one.
	maxIdleArrays = 8
	// pageOf is what sizes of segments are rounded up to, the page of the system on all but a few arm64 machines.
	pageOf = 4 << 10
)

// arrays is the memory of the arrays that Read lends. It keeps segments that clients have returned for their next
// arrays of about the same size, since new memory costs a fault for each page here and at the client.
type arrays struct {
	shared *leaseTable
	budget *resources.Budget
	after  time.Duration // idle segments are freed when there was no read for so long
	leased datasetEntry  // counts the leases; it has no engine
	leave  func()

	mu   sync.Mutex
	idle batch.Idle // each charged to the budget and owned by a client
	trim *time.Timer
}

func newArrays(s *leaseTable, o *Options) *arrays {
	budget := o.Loader.Budget
	// Arrays may take half of the memory for leases, since the rest is for batches. One array takes at most half of
	// that (lend).
	leased := datasetEntry{memory: cmp.Or(budget.Limit()/4, 1<<62)}
	made := &arrays{shared: s, budget: budget, after: o.TrimAfter, leased: leased}
	made.trim = time.AfterFunc(time.Hour, made.drop)
	made.trim.Stop()
	made.leave = budget.Join(made)
	return made
}

// Freed implements budget.Holder.
func (*arrays) Freed() {}

// Reclaim implements budget.Holder.
func (a *arrays) Reclaim(l budget.Level) (more bool) {
	if l >= budget.Idle {
		a.drop()
	}
	return false
}

// alloc returns raster.ReadOptions.Alloc for a client.
func (a *arrays) alloc(c *leaseConn) func(n int) batch.Buffer {
	return func(n int) batch.Buffer {
		if n < minArray {
			return nil
		}
		n = (n + pageOf - 1) / pageOf * pageOf
		a.mu.Lock()
		memory := a.idle.Take(n, c)
		a.mu.Unlock()
		if memory != nil {
			a.budget.Release(int64(n)) // the read has charged it
		} else {
			memory = a.shared.alloc(n)
		}
		if g, ok := memory.(*sharedSegment); ok {
			return &arrayMemory{sharedSegment: g, arrays: a, spare: int64(len(g.Bytes()) - n)}
		}
		return nil
	}
}

// arrayMemory is the memory of one array.
type arrayMemory struct {
	*sharedSegment
	arrays  *arrays
	spare   int64 // bytes beyond the read's own, which stay charged to the budget until Free
	discard bool  // another process may use the memory: it is not used again
}

// Free implements batch.Buffer.
func (b *arrayMemory) Free() {
	if b.discard || !b.arrays.keep(b.sharedSegment) {
		b.sharedSegment.Free()
	}
	b.arrays.budget.Release(b.spare)
}

// keep takes a segment for the next read of its client, if there is memory for it.
func (a *arrays) keep(g *sharedSegment) bool {
	size := int64(len(g.Bytes()))
	if !a.budget.TryAcquire(size) {
		return false
	}
	freed := size
	a.mu.Lock()
	// This is found under the lock, because forget comes after it.
	kept := g.Owner() != nil && batch.Reusable(g)
	if kept {
		freed = 0
		if a.idle.Len() >= maxIdleArrays {
			freed = a.idle.FreeSome(1)
		}
		a.idle.Keep(g)
		a.trim.Reset(a.after)
	}
	a.mu.Unlock()
	a.budget.Release(freed)
	return kept
}

// drop frees all idle segments.
func (a *arrays) drop() { a.free(func() int64 { return a.idle.FreeSome(a.idle.Bytes()) }) }

// forget frees the idle segments of a client that is gone.
func (a *arrays) forget(c *leaseConn) { a.free(func() int64 { return a.idle.Forget(c) }) }

// free gives the bytes that some segments had, which f frees, back to the budget.
func (a *arrays) free(f func() int64) {
	a.mu.Lock()
	n := f()
	a.mu.Unlock()
	a.budget.Release(n)
}
