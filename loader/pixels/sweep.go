package pixels

import (
	"context"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/chaski-eo/chaski/internal/crash"
	"github.com/chaski-eo/chaski/internal/turns"
	"github.com/chaski-eo/chaski/loader/resources"
)

// Sweep visits the numbers 0 to n-1 once each, in parallel and in no order. There are Options.Workers
// workers, and for remote files more, as Options.Readers says. start makes the visits of one worker,
// which share the Reader r; Sweep calls it for one worker after the other. Sweep calls progress, if not
// nil, after every visit, by one goroutine at a time. The first error of a visit ends it.
func Sweep(
	ctx context.Context, o resources.Options, remote bool, n int64, progress func(done, total int64),
	start func(r *Reader) (visit func(ctx context.Context, i int64) error),
) error {
	var next atomic.Int64
	var mu sync.Mutex // guards done, and keeps the calls of progress in order
	done := int64(0)
	count := func() {
		mu.Lock()
		defer mu.Unlock() // also if progress panics, since the other workers wait for the lock
		if done++; progress != nil {
			progress(done, n)
		}
	}
	readers := o.Readers(o.Workers, remote) // sets Turns, which the Readers below must have
	turns.Rest(ctx)                         // the caller waits here
	client := resources.TurnOf(ctx).Client
	group, ctx := errgroup.WithContext(ctx)
	for range readers {
		reader := NewReader(o)
		reader.Slot.For(client, nil)
		visit := start(reader)
		group.Go(crash.Guard(func() error {
			defer reader.Slot.Rest()
			ctx := turns.With(ctx, reader.Slot) // a visit decodes and computes in the same turn
			for {
				i := next.Add(1) - 1
				if i >= n {
					return nil
				}
				// Local reads do not look at ctx, so after an error the other workers would go on.
				if err := ctx.Err(); err != nil {
					return err
				}
				if !remote {
					_ = reader.Slot.Tick(ctx) // visits look at ctx
				}
				if err := visit(ctx, i); err != nil {
					return err
				}
				count()
			}
		}))
	}
	return group.Wait()
}
