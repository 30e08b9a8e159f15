// Package each calls a function for many numbers, several at a time.
package each

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/chaski-eo/chaski/internal/crash"
)

// Of calls do for the numbers from 0 to n-1, at most workers at a time, each in a goroutine of its own. It returns the
// first error, which ends the context of the others. A call that panics gives an error: see crash.Guard. Of fails if
// ctx ends before all calls have begun, even if no call has noticed it.
func Of(ctx context.Context, n int64, workers int, do func(ctx context.Context, i int64) error) error {
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	left := n
	for i := range n {
		if gctx.Err() != nil {
			break
		}
		left--
		group.Go(crash.Guard(func() error { return do(gctx, i) }))
	}
	if err := group.Wait(); err != nil || left == 0 {
		return err
	}
	return ctx.Err()
}
