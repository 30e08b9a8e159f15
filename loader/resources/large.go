package resources

import (
	"context"

	"golang.org/x/sync/semaphore"

	"github.com/chaski-eo/chaski/chunk"
)

// LargeChunks bounds the memory of chunks that decode to more than DefaultMaxChunkBytes, which Options.MaxChunkBytes may allow:
// without it every worker would hold one. nil bounds nothing.
type LargeChunks struct {
	room *semaphore.Weighted
	size int64
}

func NewLargeChunks(size int64) *LargeChunks {
	return &LargeChunks{semaphore.NewWeighted(size), size}
}

// IsLarge reports whether chunks of x count.
func IsLarge(x *chunk.Index) bool { return x.MaxStoredBytes() > DefaultMaxChunkBytes }

// Take waits for room for one chunk of x, as it is stored and decoded. done gives the room back. Who has room must not
// wait for others that decode: they may wait for room.
func (l *LargeChunks) Take(ctx context.Context, x *chunk.Index) (done func(), err error) {
	if l == nil {
		return func() {}, nil
	}
	// A chunk that is stored takes as much as one that is decoded, if compression gains nothing.
	n := min(2*int64(x.MaxStoredBytes()), l.size)
	if err := l.room.Acquire(ctx, n); err != nil {
		return nil, err
	}
	return func() { l.room.Release(n) }, nil
}
