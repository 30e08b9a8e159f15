package loader

import (
	"context"
	"sync"

	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/invariants"
	"github.com/chaski-eo/chaski/loader/resources"
)

// memory hands out batch buffers within a bound and takes them back. It keeps returned buffers for
// the next batch of the same size; they count within the bound.
//
// All of it is charged to the budget of the process. The floor is the engine's for as long as it is
// open, so batches of that size flow whatever others do. More is taken from what the budget has free,
// and goes back when others wait.
type memory struct {
	alloc  func(n int) Buffer
	budget *budget.Budget // nil for none
	leave  func()         // ends the membership in the budget
	// mu guards the fields below it. Invariants: idle.Bytes() <= taken <= granted <= bound, and
	// floor <= granted. The budget must be called without it where it calls holders: Release and
	// Acquire. TryAcquire does not.
	mu      sync.Mutex
	freed   sync.Cond // signalled when bytes come back, or a waiter gives up
	bound   int64
	floor   int64 // granted does not fall below it: of opening, or for leases and a batch beside them
	opened  int64 // the floor of opening
	lent    int64 // bytes of leases
	granted int64 // charged to the budget
	taken   int64 // bytes of buffers, in use and idle
	idle    resources.Idle
	closed  bool // the engine is closed: no buffer is kept
}

// newMemory returns a memory of at most bound bytes, of which floor are charged to b already.
func newMemory(bound int64, alloc func(n int) Buffer, b *budget.Budget, floor int64) *memory {
	m := &memory{alloc: alloc, bound: bound, budget: b, floor: floor, opened: floor, granted: floor}
	m.freed.L = &m.mu
	m.leave = b.Join(m)
	return m
}

// take returns a buffer of n bytes with any content, for a batch of the owner of ctx
// (resources.WithOwner). It waits until the bound allows it, or ctx ends. n must not be over the
// bound, otherwise it would wait until ctx ends.
func (m *memory) take(ctx context.Context, n int) (Buffer, error) {
	// The broadcast needs the lock, otherwise it could come between the waiter's check of ctx and
	// its Wait, and be lost.
	stop := context.AfterFunc(ctx, m.Freed)
	defer stop()
	b, err := m.reserve(ctx, n)
	if b != nil || err != nil {
		return b, err
	}
	return m.alloc(n), nil // outside of the lock, because it may clear many pages
}

// reserve returns an idle buffer, or nil after it has counted n more bytes as taken.
func (m *memory) reserve(ctx context.Context, n int) (Buffer, error) {
	owner := resources.OwnerOf(ctx)
	defer m.settle()
	m.mu.Lock()
	defer m.mu.Unlock()
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if b := m.idle.Take(n, owner); b != nil {
			return b, nil
		}
		// Idle buffers of other sizes and owners would keep the bound full, since nobody returns them again.
		if over := m.taken + int64(n) - m.bound; over > 0 {
			m.taken -= m.idle.FreeSome(over)
		}
		if m.taken+int64(n) <= m.bound && m.grant(int64(n)) {
			m.taken += int64(n)
			return nil, nil
		}
		if need := int64(n) - m.granted; m.taken == 0 && need > 0 && int64(n) <= m.bound {
			// It holds no more than its floor, which nobody waits for.
			m.mu.Unlock()
			err := m.budget.Acquire(ctx, need)
			m.mu.Lock()
			if err != nil {
				return nil, err
			}
			m.granted += need
			continue
		}
		m.freed.Wait()
	}
}

// now returns how many bytes batches may take at this moment: while others wait for the budget, those granted.
func (m *memory) now() int64 {
	if m.budget.Waiting() == 0 {
		return m.bound
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return min(m.granted, m.bound)
}

// grant makes room for n bytes within what is granted. It needs the lock.
func (m *memory) grant(n int64) bool {
	need := m.taken + n - m.granted
	if need <= 0 {
		return true
	}
	if m.budget.TryAcquire(need) {
		m.granted += need
		return true
	}
	m.taken -= m.idle.FreeSome(need)
	return m.taken+n <= m.granted
}

// settle gives back to the budget what is granted and not used. The caller must not hold the lock.
func (m *memory) settle() {
	m.mu.Lock()
	n := m.granted - max(m.taken, m.floor)
	m.granted -= n
	m.mu.Unlock()
	m.budget.Release(n)
}

// give takes a buffer back. With keep it is for the next batch.
func (m *memory) give(b Buffer, keep bool) {
	defer m.settle()
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(b.Bytes())
	invariants.Check(m.taken-m.idle.Bytes() >= int64(n),
		"%d bytes are given back, but %d are out", n, m.taken-m.idle.Bytes())
	m.idle.CheckOut(b)
	others := m.granted > m.floor && m.budget.Waiting() > 0 // they wait for what this engine has beyond its floor
	if keep && !m.closed && !others && resources.Reusable(b) {
		m.idle.Keep(b)
	} else {
		m.taken -= int64(n)
		b.Free()
	}
	m.freed.Broadcast()
}

// lend counts n bytes of a batch as a lease, for which there is no end. It reports false if they and
// one more batch of whole bytes do not find room: then a client that keeps what it gets would stop all
// others of this engine.
func (m *memory) lend(n, whole int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	need := m.lent + n + max(n, whole)
	if need > m.bound {
		return false
	}
	if more := need - m.granted; more > 0 {
		if !m.budget.TryAcquire(more) {
			return false
		}
		m.granted += more
	}
	m.lent += n
	m.floor = max(m.opened, need)
	return true
}

// returned ends leases of n bytes.
func (m *memory) returned(n, whole int64) {
	m.mu.Lock()
	m.lent -= n
	m.floor = m.opened
	if m.lent > 0 {
		m.floor = max(m.opened, min(m.lent+whole, m.granted))
	}
	m.mu.Unlock()
	m.settle()
}

// dropIdle frees the idle buffers. The caller holds mu.
func (m *memory) dropIdle() {
	m.taken -= m.idle.Bytes()
	m.idle.Free()
}

// forget frees the idle buffers of an owner that is gone. Those that come back later are not kept.
func (m *memory) forget(o resources.Owner) {
	defer m.settle()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.taken -= m.idle.Forget(o)
	m.freed.Broadcast()
}

// trim frees the idle buffers.
func (m *memory) trim() {
	defer m.settle()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dropIdle()
}

// Reclaim implements budget.Holder. What lies within the floor is nobody else's, so it stays.
func (m *memory) Reclaim(l budget.Level) (more bool) {
	defer m.settle()
	m.mu.Lock()
	defer m.mu.Unlock()
	used := m.taken - m.idle.Bytes()
	if over := m.taken - m.floor; over > 0 && (used == 0 || l >= budget.Idle) {
		m.taken -= m.idle.FreeSome(over)
	}
	return false
}

// Freed implements budget.Holder.
func (m *memory) Freed() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.freed.Broadcast()
}

// close frees the idle buffers, and from now on every buffer that comes back.
func (m *memory) close() {
	m.leave()
	defer m.settle()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	m.opened, m.floor = 0, 0
	m.dropIdle()
}
