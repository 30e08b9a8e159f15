//go:build race

package zstd

import "sync"

// pool replaces sync.Pool, which under the race detector drops a fourth of its values at random. An encoder has tables
// of up to 34 MiB, which the detector shadows four times: making them again took a sixth of the processor time of the
// tests of ops/recipe.
type pool struct {
	mu   sync.Mutex
	idle []any
}

// Get returns the value that was put last, or nil.
func (p *pool) Get() any {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle)
	if n == 0 {
		return nil
	}
	e := p.idle[n-1]
	p.idle = p.idle[:n-1]
	return e
}

// Put keeps e.
func (p *pool) Put(e any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, e)
}
