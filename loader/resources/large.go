package resources

import (
	"context"
	"math"

	"golang.org/x/sync/semaphore"

	"github.com/chaski-eo/chaski/format/chunk"
)

// LargeChunks bounds the memory of large chunks, which are those that decode to more than DefaultMaxChunkBytes.
// Otherwise each worker could hold one of Options.MaxChunkBytes. nil bounds nothing.
type LargeChunks struct {
	room *semaphore.Weighted // of size bytes
	size int64               // bytes for all large chunks together
}

// budgetShare bounds large chunks: 1/budgetShare of the memory budget. The budget does not count them; they take it
// from the quarter of all memory that is left for uncharged things. A chunk that does not fit gets all of it, alone.
const budgetShare = 8

// largeBytes returns the bytes for large chunks together, of a dataset with memory for batches. limit is the limit of
// the budget, or 0.
func largeBytes(memory, limit int64) int64 {
	n := max(memory, DefaultMemoryBytes)
	if limit > 0 {
		n = min(n, limit/budgetShare)
	}
	return n
}

// NewLargeChunks returns a bound of size bytes for all large chunks together.
func NewLargeChunks(size int64) *LargeChunks {
	return &LargeChunks{semaphore.NewWeighted(size), size}
}

// IsLarge reports whether x has chunks that decode to more than DefaultMaxChunkBytes.
func IsLarge(x *chunk.Index) bool { return x.MaxDecodedBytes() > DefaultMaxChunkBytes }

// Take waits for room for one chunk of x, stored and decoded. The caller must call done, which gives the
// room back. A caller that has room must not wait for chunks that others decode, because they may wait
// for room. It fails if ctx ends.
func (l *LargeChunks) Take(ctx context.Context, x *chunk.Index) (done func(), err error) {
	// Twice, because the stored bytes of a chunk may be as many as the decoded ones, if compression
	// gains nothing.
	return l.TakeBytes(ctx, 2*int64(x.MaxDecodedBytes()))
}

// Size returns the bytes for all large chunks together.
func (l *LargeChunks) Size() int64 {
	if l == nil {
		return math.MaxInt64
	}
	return l.size
}

// TakeBytes is Take for n bytes of something else.
func (l *LargeChunks) TakeBytes(ctx context.Context, n int64) (done func(), err error) {
	if l == nil {
		return func() {}, nil
	}
	// At most size, since more than that would otherwise wait forever: it gets all the room, alone.
	n = min(n, l.size)
	if err := l.room.Acquire(ctx, n); err != nil {
		return nil, err
	}
	return func() { l.room.Release(n) }, nil
}
