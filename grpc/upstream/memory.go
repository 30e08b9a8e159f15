package upstream

import (
	"sync"

	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/resources"
)

// memory keeps the buffers of batches that came back for the next ones, because a new segment of shared memory costs a
// page fault every 4 KiB, and every client has to map it. It is payload.Memory.
type memory struct {
	alloc func(int) loader.Buffer
	bound int64 // bytes that are kept at most

	mu   sync.Mutex
	idle map[int][]loader.Buffer // by size
	kept int64                   // bytes of idle
	over bool                    // nothing is kept any more
}

func newMemory(o loader.Options) *memory {
	m := &memory{alloc: o.Alloc, bound: resources.DefaultMemoryBytes, idle: map[int][]loader.Buffer{}}
	if m.alloc == nil {
		m.alloc = resources.NewHeap
	}
	return m
}

// setBound must be called before the memory is used.
func (m *memory) setBound(n int64) { m.bound = n }

// Take implements payload.Memory.
func (m *memory) Take(n int) loader.Buffer {
	m.mu.Lock()
	if l := m.idle[n]; len(l) > 0 {
		b := l[len(l)-1]
		m.idle[n] = l[:len(l)-1]
		m.kept -= int64(n)
		m.mu.Unlock()
		return b
	}
	m.mu.Unlock()
	return m.alloc(n) // without the lock: it may clear many pages
}

// Give implements payload.Memory.
func (m *memory) Give(b loader.Buffer, keep bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := int64(len(b.Bytes()))
	if !keep || m.over || m.kept+n > m.bound {
		b.Free()
		return
	}
	m.idle[int(n)] = append(m.idle[int(n)], b)
	m.kept += n
}

// trim frees what no batch is in.
func (m *memory) trim() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.idle {
		for _, b := range l {
			b.Free()
		}
	}
	clear(m.idle)
	m.kept = 0
}

// close frees what no batch is in, and batches when they come back.
func (m *memory) close() {
	m.mu.Lock()
	m.over = true
	m.mu.Unlock()
	m.trim()
}
