package refcache_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/chaski-eo/chaski/internal/pace"
	"github.com/chaski-eo/chaski/internal/turns"
	"github.com/chaski-eo/chaski/source/refcache"
)

// TestWhoWaitsForAnotherHasNoTurn: whoever waits for a value that somebody else opens leaves its turn, which the one
// who opens may need.
func TestWhoWaitsForAnotherHasNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := refcache.New[int](refcache.Options[int]{MaxEntries: 1, Close: func(int) error { return nil }})
		all := turns.New(1, 1)
		acquire := func(who string, open func(context.Context) (int, error)) chan error {
			got := make(chan error, 1)
			go func() {
				slot := all.Slot(who)
				defer slot.Rest()
				if err := slot.Tick(t.Context()); err != nil {
					got <- err
					return
				}
				l, err := c.Acquire(turns.With(t.Context(), slot), 1, open)
				if err == nil {
					err = l.Release(true)
				}
				got <- err
			}()
			synctest.Wait()
			return got
		}
		goOn := make(chan struct{})
		first := acquire("a", func(ctx context.Context) (int, error) {
			pace.Rest(ctx) // it reads
			<-goOn
			return 1, pace.Tick(ctx)
		})
		second := acquire("b", nil)
		if all.Taken() != 0 {
			t.Error("it waits with its turn")
		}
		close(goOn)
		for _, got := range []chan error{first, second} {
			if err := <-got; err != nil {
				t.Error(err)
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}
