package upstream

import (
	"sync"

	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/resources"
)

// memory keeps the buffers of released batches for the next ones, up to a bound. It is payload.Memory. Unlike an
// engine that decodes, it never waits for a buffer: the number of requests ahead bounds how many are in use.
type memory struct {
	alloc func(int) loader.Buffer
	bound int64 // bytes that are kept at most

	mu   sync.Mutex
	idle resources.Idle
	over bool // nothing is kept any more
}

func newMemory(o loader.Options) *memory {
	m := &memory{alloc: o.Alloc, bound: resources.DefaultMemoryBytes}
	if m.alloc == nil {
		m.alloc = resources.NewHeap
	}
	return m
}

// setBound must be called before the memory is used.
func (m *memory) setBound(n int64) { m.bound = n }

// Take implements payload.Memory, for batches without an owner.
func (m *memory) Take(n int) loader.Buffer { return m.take(n, nil) }

func (m *memory) take(n int, owner resources.Owner) loader.Buffer {
	m.mu.Lock()
	buffer := m.idle.Take(n, owner)
	m.mu.Unlock()
	if buffer != nil {
		return buffer
	}
	return m.alloc(n) // without the lock: it may clear many pages
}

// Give implements payload.Memory.
func (m *memory) Give(b loader.Buffer, keep bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := int64(len(b.Bytes()))
	m.idle.CheckOut(b)
	if !keep || m.over || !resources.Reusable(b) || m.idle.Bytes()+n > m.bound {
		b.Free()
		return
	}
	m.idle.Keep(b)
}

// forget frees the memory of an owner that is gone.
func (m *memory) forget(o resources.Owner) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.idle.Forget(o)
}

// owned is the memory for batches of one owner.
type owned struct {
	*memory
	owner resources.Owner
}

// Take implements payload.Memory.
func (o owned) Take(n int) loader.Buffer { return o.take(n, o.owner) }

// trim frees unused buffers.
func (m *memory) trim() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.idle.Free()
}

// close frees unused buffers now and the others when their batches are released.
func (m *memory) close() {
	m.mu.Lock()
	m.over = true
	m.mu.Unlock()
	m.trim()
}
