// Package inorder makes values on several goroutines and uses them in their order.
package inorder

import (
	"cmp"
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/chaski-eo/chaski/internal/crash"
)

// Do makes n values on several workers, and hands them to use in their order, on the caller's goroutine. At most
// twice as many values as there are workers wait to be used. drop gets those that are made but not used because of an
// error.
func Do[T any](ctx context.Context, n, workers int, produce func(ctx context.Context, i int) (T, error),
	use func(i int, v T) error, drop func(v T)) (err error) {
	type made struct {
		v   T
		err error
	}
	ctx, cancel := context.WithCancel(ctx)
	queue := make(chan chan made, 2*workers)
	var group errgroup.Group
	group.SetLimit(workers + 1) // and the goroutine that starts them
	group.Go(func() error {
		defer close(queue)
		for i := range n {
			slot := make(chan made, 1)
			select {
			case queue <- slot:
			case <-ctx.Done():
				return nil
			}
			group.Go(func() error {
				var result made
				result.err = crash.Call(func() (err error) {
					result.v, err = produce(ctx, i)
					return err
				})
				slot <- result
				return nil
			})
		}
		return nil
	})
	i := 0
	// After an error the queue is still read to its end, so drop gets every value that was made.
	for slot := range queue {
		result := <-slot
		switch {
		case result.err != nil:
			err = cmp.Or(err, result.err)
		case err != nil:
			drop(result.v)
		default:
			err = use(i, result.v)
		}
		if err != nil {
			cancel()
		}
		i++
	}
	_ = group.Wait()
	if err == nil && i < n {
		err = ctx.Err() // the caller's
	}
	cancel()
	return err
}
