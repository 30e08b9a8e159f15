package openzl

import (
	"math/bits"

	"github.com/chaski-eo/chaski/internal/cast"
)

// keepBytes is what a pool may hold on to between frames without asking whether it is needed.
const keepBytes = 64 << 20

// buffer is memory that one or more streams look at.
type buffer[T any] struct {
	mem  []T
	refs int
}

// pool hands out memory and takes it back, so that a decoder that sees frames of one shape
// allocates for the first one only. Buffers come in classes four to a power of two: a class is
// used again whatever the exact size.
type pool[T any] struct {
	size  int // bytes of a T
	make  func(n int) []T
	free  [256][]*buffer[T]
	bytes int // of live buffers
	peak  int // of live buffers, in this frame
	owned int // of all buffers
}

// class returns the class of n elements and its capacity.
func class(n int) (class, capacity int) {
	if n <= 256 {
		return 0, 256
	}
	k := bits.Len(uint(n-1)) - 1 // 2^k < n <= 2^(k+1)
	step := 1 << (k - 2)
	q := (n - 1<<k + step - 1) / step // 1..4
	return 4*k + q, 1<<k + q*step
}

// get returns a buffer of at least n elements with one reference. The contents are arbitrary.
func (p *pool[T]) get(n int) *buffer[T] {
	c, capacity := class(n)
	var b *buffer[T]
	if f := p.free[c]; len(f) > 0 {
		b = f[len(f)-1]
		p.free[c] = f[:len(f)-1]
	} else {
		b = &buffer[T]{mem: p.make(capacity)}
		p.owned += capacity * p.size
	}
	b.refs = 1
	p.bytes += len(b.mem) * p.size
	p.peak = max(p.peak, p.bytes)
	return b
}

// release drops one reference.
func (p *pool[T]) release(b *buffer[T]) {
	if b.refs--; b.refs > 0 {
		return
	}
	c, _ := class(len(b.mem))
	p.free[c] = append(p.free[c], b)
	p.bytes -= len(b.mem) * p.size
}

// trim forgets all free buffers if the pool owns much more than the last frame needed, and starts
// a new peak.
func (p *pool[T]) trim() {
	if p.owned > keepBytes && p.owned > 4*p.peak {
		for i := range p.free {
			p.free[i] = nil
		}
		p.owned = p.bytes
	}
	p.peak = p.bytes
}

func newBytePool() pool[byte] { return pool[byte]{size: 1, make: cast.Aligned} }

func newLensPool() pool[uint32] {
	return pool[uint32]{size: 4, make: func(n int) []uint32 { return make([]uint32, n) }}
}
