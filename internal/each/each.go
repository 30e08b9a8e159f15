// Package each divides numbers or items among goroutines, and returns the error of the first item in the list that
// failed, whichever goroutine was faster.
package each

import (
	"context"
	"iter"
	"sync"

	"github.com/chaski-eo/chaski/internal/crash"
)

// Of calls do for the numbers from 0 to n-1, at most workers at a time. It returns the error of the lowest number that
// failed. Numbers above it that have not begun are left out, and the contexts of those that run end; those below it run
// to their end, since one of them may fail too. A call that panics gives an error: see crash.Call. Of fails if ctx ends
// before all calls have begun, even if no call has noticed it.
func Of(ctx context.Context, n int64, workers int, do func(ctx context.Context, i int64) error) error {
	return Share(ctx, Numbers(n), int(min(int64(workers), n)),
		func(ctx context.Context, _ int, numbers iter.Seq[int64]) error {
			for i := range numbers {
				if err := do(ctx, i); err != nil {
					return err
				}
			}
			return nil
		})
}

// Numbers returns the numbers from 0 to n-1.
func Numbers(n int64) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for i := int64(0); i < n && yield(i); i++ {
		}
	}
}

// Share runs some workers, at least one, and divides items among them. work gets the number of its worker and the items
// that the worker takes; if it returns an error, that is the error of the item it took last. Otherwise Share is like
// Of. An error of a worker that has taken no item is the first of all.
func Share[T any](ctx context.Context, items iter.Seq[T], workers int,
	work func(ctx context.Context, worker int, items iter.Seq[T]) error) error {
	next, stop := iter.Pull(items)
	defer stop()
	state := &share[T]{ctx: ctx, next: next, workers: make([]worker, max(1, workers))}
	for w := range state.workers {
		state.workers[w].last = -1
		state.workers[w].ctx, state.workers[w].cancel = context.WithCancel(ctx)
		defer state.workers[w].cancel()
	}
	var running sync.WaitGroup
	for w := range state.workers {
		running.Go(func() {
			err := crash.Call(func() error { return work(state.workers[w].ctx, w, state.items(w)) })
			if err != nil {
				state.fail(w, err)
			}
		})
	}
	running.Wait()
	return state.err
}

// share is the state of Share.
type share[T any] struct {
	ctx  context.Context // the caller's
	mu   sync.Mutex      // of the fields below
	next func() (T, bool)

	count   int64 // of items that workers took
	workers []worker
	failed  int64 // the place of the item of err
	err     error
}

// worker is what Share knows of a worker.
type worker struct {
	ctx    context.Context
	cancel context.CancelFunc
	last   int64 // the place of the item it took last, or -1
}

// items returns the items that a worker takes.
func (s *share[T]) items(w int) iter.Seq[T] {
	return func(yield func(T) bool) {
		for {
			if item, ok := s.take(w); !ok || !yield(item) {
				return
			}
		}
	}
}

// take returns the next item. ok is false if no item is left, or if one has failed: all that come are behind it.
func (s *share[T]) take(w int) (item T, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return item, false
	}
	if item, ok = s.next(); !ok {
		return item, false
	}
	if err := s.ctx.Err(); err != nil {
		s.failed, s.err = s.count, err
		return item, false
	}
	s.workers[w].last = s.count
	s.count++
	return item, true
}

// fail keeps the error of a worker's last item, unless an item before it has failed, and ends the contexts of the
// workers whose items are behind it.
func (s *share[T]) fail(w int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	place := s.workers[w].last
	if s.err != nil && s.failed <= place {
		return
	}
	s.failed, s.err = place, err
	for _, other := range s.workers {
		if other.last > place {
			other.cancel()
		}
	}
}
