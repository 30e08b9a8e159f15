package loader

import (
	"context"
	"sync"

	"github.com/chaski-eo/chaski/internal/view"
)

// memory hands out batch buffers within a bound and takes them back. Buffers that come back are
// kept for the next batch of the same size, and count within the bound.
type memory struct {
	mu    sync.Mutex
	freed sync.Cond // signalled when bytes come back, or a waiter gives up
	bound int64
	taken int64            // bytes of buffers in use and idle
	idle  map[int][][]byte // by size
	idleN int64            // bytes of idle buffers
}

func newMemory(bound int64) *memory {
	m := &memory{bound: bound, idle: map[int][][]byte{}}
	m.freed.L = &m.mu
	return m
}

// take returns a 64-byte aligned buffer of n bytes with any content, waiting until the bound allows
// it or ctx ends. n must not be over the bound.
func (m *memory) take(ctx context.Context, n int) ([]byte, error) {
	stop := context.AfterFunc(ctx, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.freed.Broadcast()
	})
	defer stop()
	m.mu.Lock()
	defer m.mu.Unlock()
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if l := m.idle[n]; len(l) > 0 {
			b := l[len(l)-1]
			m.idle[n] = l[:len(l)-1]
			m.idleN -= int64(n)
			return b, nil
		}
		if m.taken+int64(n) > m.bound && m.idleN > 0 {
			m.dropIdle()
		}
		if m.taken+int64(n) <= m.bound {
			m.taken += int64(n)
			return view.Aligned(n), nil
		}
		m.freed.Wait()
	}
}

func (m *memory) give(b []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.idle[len(b)] = append(m.idle[len(b)], b)
	m.idleN += int64(len(b))
	m.freed.Broadcast()
}

// dropIdle leaves the idle buffers to the garbage collector: they have the wrong sizes.
func (m *memory) dropIdle() {
	m.taken -= m.idleN
	m.idleN = 0
	clear(m.idle)
}
