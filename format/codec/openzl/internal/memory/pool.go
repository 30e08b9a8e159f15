package memory

import "math/bits"

// keepBytes is the size up to which a pool always keeps its free buffers from frame to frame. 64 MiB is
// a tile of 2048 x 2048 pixels, four bands of 16 bits, with one intermediate stream: decoders of smaller
// tiles never allocate twice.
const keepBytes = 64 << 20

// Buffer is memory that one or more streams use.
type Buffer[T any] struct {
	Mem  []T
	refs int
}

// Retain adds a reference, for a further stream that uses b.
func (b *Buffer[T]) Retain() { b.refs++ }

// Pool hands out buffers and takes them back, so a decoder allocates for the first of many
// frames of one shape only. Buffers come in size classes, four to each power of two.
type Pool[T any] struct {
	size  int // bytes of a T
	alloc func(n int) []T
	free  [256][]*Buffer[T]
	live  int // bytes of the buffers in use
	peak  int // largest live in this frame
	owned int // bytes of all buffers, free ones included
}

// class returns the size class of n elements and how many elements its buffers have.
func class(n int) (class, capacity int) {
	// Buffers below 256 elements share one class, because the bookkeeping would cost more than it saves.
	if n <= 256 {
		return 0, 256
	}
	log := bits.Len(uint(n-1)) - 1 // 2^log < n <= 2^(log+1)
	step := 1 << (log - 2)
	quarter := (n - 1<<log + step - 1) / step // 1..4
	return 4*log + quarter, 1<<log + quarter*step
}

// Get returns a buffer of at least n elements with one reference. The contents are arbitrary.
func (p *Pool[T]) Get(n int) *Buffer[T] {
	sizeClass, capacity := class(n)
	var buf *Buffer[T]
	if free := p.free[sizeClass]; len(free) > 0 {
		buf = free[len(free)-1]
		p.free[sizeClass] = free[:len(free)-1]
	} else {
		buf = &Buffer[T]{Mem: p.alloc(capacity)}
		p.owned += capacity * p.size
	}
	buf.refs = 1
	p.live += len(buf.Mem) * p.size
	p.peak = max(p.peak, p.live)
	return buf
}

// Release drops one reference. The buffer is free when none is left.
func (p *Pool[T]) Release(b *Buffer[T]) {
	if b.refs--; b.refs > 0 {
		return
	}
	c, _ := class(len(b.Mem))
	p.free[c] = append(p.free[c], b)
	p.live -= len(b.Mem) * p.size
}

// trim drops all free buffers if the pool holds more than keepBytes and more than four times the bytes
// of the last frame. It then starts a new peak.
func (p *Pool[T]) trim() {
	if p.owned > keepBytes && p.owned > 4*p.peak {
		for i := range p.free {
			p.free[i] = nil
		}
		p.owned = p.live
	}
	p.peak = p.live
}
