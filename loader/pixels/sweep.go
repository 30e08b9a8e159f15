package pixels

import (
	"context"
	"iter"
	"sync"

	"github.com/chaski-eo/chaski/internal/each"
	"github.com/chaski-eo/chaski/loader/resources"
)

// Sweep visits the numbers 0 to n-1 once each, in parallel and in no order. There are Options.Workers
// workers, and for remote files more, as Options.Readers says. start makes the visits of one worker,
// which share the Reader r; Sweep calls it for one worker after the other. Sweep calls progress, if not
// nil, after every visit, by one goroutine at a time. The error comes from the lowest number, as in each.Of.
func Sweep(
	ctx context.Context, o resources.Options, remote bool, n int64, progress func(done, total int64),
	start func(r *Reader) (visit func(ctx context.Context, i int64) error),
) error {
	var mu sync.Mutex // guards done, and keeps the calls of progress in order
	done := int64(0)
	count := func() {
		mu.Lock()
		// Deferred for a progress that panics, since the other workers wait for the lock.
		defer mu.Unlock()
		if done++; progress != nil {
			progress(done, n)
		}
	}
	readers := o.Readers(o.Workers, remote) // sets Decoders, which the Readers below must have
	client := resources.CallerOf(ctx).Client
	lent, visits := make([]*Reader, readers), make([]func(ctx context.Context, i int64) error, readers)
	for w := range readers {
		lent[w] = NewReader(o)
		lent[w].Client = client
		visits[w] = start(lent[w])
	}
	return each.Share(ctx, each.Numbers(n), readers, func(ctx context.Context, w int, numbers iter.Seq[int64]) error {
		defer lent[w].Close()
		for i := range numbers {
			if err := lent[w].visit(ctx, i, visits[w]); err != nil {
				return err
			}
			count()
		}
		return nil
	})
}

// visit makes one visit of Sweep.
func (r *Reader) visit(ctx context.Context, i int64, visit func(ctx context.Context, i int64) error) error {
	r.Work()
	defer r.Rest()
	return visit(ctx, i)
}
