package loader

import (
	"sync"

	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/invariants"
	"github.com/chaski-eo/chaski/loader/batch"
)

const (
	// busyBatches is how many batches keep workers busy: two that they fill, the one that the caller holds, and one
	// on its way to the caller. 2 + 1 + 1 = 4.
	busyBatches = 4
	// autoBatches is how many batches the default memory holds: also those that a client has asked for ahead, in
	// shared memory, and the one before that its loop still names. 4 + DefaultPrefetch + 1 = 8. With fewer, large
	// batches are copied to their client.
	autoBatches = busyBatches + batch.DefaultPrefetch + 1
)

// batchPool lends batch buffers within a bound. It keeps returned buffers for the next batches of about the same size;
// they count within the bound.
//
// All of it is charged to the budget of the process. The floor belongs to the engine while it is open, so batches of
// that size never wait for others. More memory is taken when the budget has some free, or for a ticket that has waited
// for it in the queue of the budget, and given back when others wait.
type batchPool struct {
	alloc  func(n int) batch.Buffer
	budget *budget.Budget // nil for none
	leave  func()         // ends the membership in the budget
	more   func()         // called when take may succeed that failed before; it must not wait for locks
	// mu guards the fields below it. Invariants: idle.Bytes() <= buffers <= allowance, buffers <= bound, and
	// floor <= allowance. The budget must be called without it where it calls holders: Release and Acquire.
	// TryAcquire does not.
	mu        sync.Mutex
	bound     int64
	floor     int64 // of opening, or for leases and a batch beside them
	opened    int64 // the floor of opening
	leases    int64 // bytes of all leases
	allowance int64 // charged to the budget
	buffers   int64 // bytes of buffers, in use and idle
	idle      batch.Idle
	closed    bool // the engine is closed: no buffer is kept
}

// newMemory returns a memory of at most bound bytes. floor of them are charged to b already.
func newMemory(bound int64, alloc func(n int) batch.Buffer, b *budget.Budget, floor int64, more func()) *batchPool {
	m := &batchPool{alloc: alloc, bound: bound, budget: b, floor: floor, opened: floor, allowance: floor, more: more}
	m.leave = b.Join(m)
	return m
}

// take reserves n bytes, if there is room for them. It returns a buffer for a batch of an owner (resources.WithOwner),
// as Idle.Take does, or nil if the caller is to make it by alloc, which may clear many pages, without locks.
// charged bytes of the budget come with the batch: they are the caller's if there is no room. It never waits.
func (m *batchPool) take(n int, owner batch.Owner, charged int64) (b batch.Buffer, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.allowance += charged
	defer func() {
		if !ok {
			m.allowance -= charged
		}
	}()
	if buffer := m.idle.Take(n, owner); buffer != nil {
		return buffer, true
	}
	// Idle buffers of other sizes and owners would keep the bound full, since they are never returned again.
	if excess := m.buffers + int64(n) - m.bound; excess > 0 {
		m.buffers -= m.idle.FreeSome(excess)
	}
	if m.buffers+int64(n) > m.bound || !m.grant(int64(n)) {
		return nil, false
	}
	m.buffers += int64(n)
	return nil, true
}

// now returns how many bytes batches may take at this moment: while others wait for the budget, its allowance.
func (m *batchPool) now() int64 {
	if m.budget.Waiting() == 0 {
		return m.bound
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return min(m.allowance, m.bound)
}

// grant makes room for n bytes within the allowance. It needs the lock.
func (m *batchPool) grant(n int64) bool {
	need := m.buffers + n - m.allowance
	if need <= 0 {
		return true
	}
	if m.budget.TryAcquire(need) {
		m.allowance += need
		return true
	}
	m.buffers -= m.idle.FreeSome(need)
	return m.buffers+n <= m.allowance
}

// full reports whether the bound is in the way of n bytes more.
func (m *batchPool) full(n int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.buffers-m.idle.Bytes()+n > m.bound
}

// fits reports whether n bytes more need nothing of the budget.
func (m *batchPool) fits(n int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.buffers-m.idle.Bytes()+n <= m.allowance
}

// own returns the bytes that are the engine's whoever waits: the floor, or batches that are out. It needs the lock.
func (m *batchPool) own() int64 { return max(m.floor, m.buffers-m.idle.Bytes()) }

// unlock gives the unused part of the allowance back to the budget. It takes that off before it ends the lock: a ticket
// of this engine would otherwise get what others have waited for.
func (m *batchPool) unlock() {
	n := m.allowance - max(m.buffers, m.own())
	m.allowance -= n
	m.mu.Unlock()
	m.budget.Release(n)
}

// give takes a buffer back. With keep it is for the next batch.
func (m *batchPool) give(b batch.Buffer, keep bool) {
	m.mu.Lock()
	defer m.unlock()
	size := len(b.Bytes())
	invariants.Check(m.buffers-m.idle.Bytes() >= int64(size),
		"%d bytes are given back, but %d are out", size, m.buffers-m.idle.Bytes())
	m.idle.CheckOut(b)
	m.buffers -= int64(size)
	others := m.allowance > m.own() && m.budget.Waiting() > 0 // they wait for what this engine has beyond
	if keep && !m.closed && !others && batch.Reusable(b) {
		m.buffers += int64(size) - m.idle.Keep(b)
	} else {
		b.Free()
	}
	m.more()
}

// lend counts n bytes of a batch as a lease, which a client may keep for any time. It reports false if they and one
// more batch of whole bytes have no room: then a client that keeps its batches would stop all others of this engine.
func (m *batchPool) lend(n, whole int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	need := m.leases + n + max(n, whole)
	if need > m.bound {
		return false
	}
	if due := need - m.allowance; due > 0 {
		if !m.budget.TryAcquire(due) {
			return false
		}
		m.allowance += due
	}
	m.leases += n
	m.floor = max(m.opened, need)
	return true
}

// returned ends leases of n bytes.
func (m *batchPool) returned(n, whole int64) {
	m.mu.Lock()
	defer m.unlock()
	m.leases -= n
	m.floor = m.opened
	if m.leases > 0 {
		m.floor = max(m.opened, min(m.leases+whole, m.allowance))
	}
}

// dropIdle frees the idle buffers. The caller holds mu.
func (m *batchPool) dropIdle() {
	m.buffers -= m.idle.Bytes()
	m.idle.Free()
}

// forget frees the idle buffers of an owner that is gone. Those that come back later are not kept.
func (m *batchPool) forget(o batch.Owner) {
	m.mu.Lock()
	defer m.unlock()
	m.buffers -= m.idle.Forget(o)
	m.more()
}

// trim frees the idle buffers.
func (m *batchPool) trim() {
	m.mu.Lock()
	defer m.unlock()
	m.dropIdle()
}

// Reclaim implements budget.Holder. It keeps the floor, which belongs to the engine.
func (m *batchPool) Reclaim(l budget.Level) (more bool) {
	m.mu.Lock()
	defer m.unlock()
	used := m.buffers - m.idle.Bytes()
	if excess := m.buffers - m.own(); excess > 0 && (used == 0 || l >= budget.Idle) {
		m.buffers -= m.idle.FreeSome(excess)
	}
	return false
}

// Freed implements budget.Holder.
func (m *batchPool) Freed() { m.more() }

// close frees the idle buffers, and from now on every buffer that comes back.
func (m *batchPool) close() {
	m.leave()
	m.mu.Lock()
	defer m.unlock()
	m.closed = true
	m.opened, m.floor = 0, 0
	m.dropIdle()
}
