package loader

import (
	"context"
	"sync"

	"github.com/chaski-eo/chaski/internal/invariants"
	"github.com/chaski-eo/chaski/loader/resources"
)

// memory hands out batch buffers within a bound and takes them back. It keeps returned buffers for
// the next batch of the same size; they count within the bound.
type memory struct {
	alloc func(n int) Buffer
	// mu guards the fields below it. Invariant: idle.Bytes() <= taken <= bound.
	mu     sync.Mutex
	freed  sync.Cond // signalled when bytes come back, or a waiter gives up
	bound  int64
	taken  int64 // bytes of buffers, in use and idle
	idle   resources.Idle
	closed bool // the engine is closed: no buffer is kept
}

func newMemory(bound int64, alloc func(n int) Buffer) *memory {
	m := &memory{alloc: alloc, bound: bound}
	m.freed.L = &m.mu
	return m
}

// take returns a buffer of n bytes with any content, for a batch of the owner of ctx
// (resources.WithOwner). It waits until the bound allows it, or ctx ends. n must not be over the
// bound, otherwise it would wait until ctx ends.
func (m *memory) take(ctx context.Context, n int) (Buffer, error) {
	// The broadcast needs the lock, otherwise it could come between the waiter's check of ctx and
	// its Wait, and be lost.
	stop := context.AfterFunc(ctx, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.freed.Broadcast()
	})
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
		if m.taken+int64(n) <= m.bound {
			m.taken += int64(n)
			return nil, nil
		}
		m.freed.Wait()
	}
}

// give takes a buffer back. With keep it is for the next batch.
func (m *memory) give(b Buffer, keep bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(b.Bytes())
	invariants.Check(m.taken-m.idle.Bytes() >= int64(n),
		"%d bytes are given back, but %d are out", n, m.taken-m.idle.Bytes())
	m.idle.CheckOut(b)
	if keep && !m.closed && resources.Reusable(b) {
		m.idle.Keep(b)
	} else {
		m.taken -= int64(n)
		b.Free()
	}
	m.freed.Broadcast()
}

// dropIdle frees the idle buffers. The caller holds mu.
func (m *memory) dropIdle() {
	m.taken -= m.idle.Bytes()
	m.idle.Free()
}

// forget frees the idle buffers of an owner that is gone. Those that come back later are not kept.
func (m *memory) forget(o resources.Owner) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.taken -= m.idle.Forget(o)
	m.freed.Broadcast()
}

// trim frees the idle buffers.
func (m *memory) trim() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dropIdle()
}

// close frees the idle buffers, and from now on every buffer that comes back.
func (m *memory) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	m.dropIdle()
}
