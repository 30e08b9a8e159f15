package batch

import "sync"

// Pool makes the memory of batches and keeps it, up to a bound, for the next batches of about the same size. It never
// waits for memory: whoever asks for batches bounds how many are in use. The zero value keeps nothing. It is safe for
// concurrent use.
type Pool struct {
	Alloc func(n int) Buffer // nil: NewHeap
	Bound int64              // bytes that are kept at most; not changed once the pool is used

	mu     sync.Mutex
	idle   Idle
	closed bool // nothing is kept any more
}

// Take returns memory of n bytes, or somewhat more as Idle.Take does, with any content for a batch without an owner.
func (p *Pool) Take(n int) Buffer { return p.take(n, nil) }

func (p *Pool) take(n int, owner Owner) Buffer {
	p.mu.Lock()
	buffer := p.idle.Take(n, owner)
	p.mu.Unlock()
	switch {
	case buffer != nil:
		return buffer
	case p.Alloc == nil:
		return NewHeap(n)
	}
	return p.Alloc(n) // without the lock: it may clear many pages
}

// Give takes memory back; with keep it may be used for another batch.
func (p *Pool) Give(b Buffer, keep bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle.CheckOut(b)
	if !keep || p.closed || !Reusable(b) || p.idle.Bytes()+int64(len(b.Bytes())) > p.Bound {
		b.Free()
		return
	}
	p.idle.Keep(b)
}

// Forget frees the memory of an owner that is gone.
func (p *Pool) Forget(o Owner) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle.Forget(o)
}

// Trim frees unused memory.
func (p *Pool) Trim() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle.Free()
}

// Close frees unused memory now, and the rest when its batches are released.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.idle.Free()
}

// OwnedPool is the memory of a pool for batches of one owner.
type OwnedPool struct {
	*Pool
	Owner Owner
}

// Take is as of Pool.
func (o OwnedPool) Take(n int) Buffer { return o.take(n, o.Owner) }
