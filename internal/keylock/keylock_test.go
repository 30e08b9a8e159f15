package keylock

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
)

// TestLocks: one holder of a key at a time, another key does not wait, and a wait ends with its context.
func TestLocks(t *testing.T) {
	var locks Locks[string]
	unlock, err := locks.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	other, err := locks.Lock(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	other()
	reason := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	if _, err := locks.Lock(ctx, "a"); !errors.Is(err, reason) {
		t.Errorf("%v, want %v", err, reason)
	}
	unlock()
	if unlock, err = locks.Lock(ctx, "a"); err != nil { // a free lock needs no wait
		t.Fatal(err)
	}
	unlock()
	if len(locks.locks) > 0 {
		t.Errorf("%d locks are left", len(locks.locks))
	}
}

// TestOneAtATime: many goroutines that add to one number without another lock lose no addition.
func TestOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var locks Locks[int]
		var all sync.WaitGroup
		sums := make([]int, 3)
		for i := range 300 {
			all.Go(func() {
				unlock, err := locks.Lock(t.Context(), i%len(sums))
				if err != nil {
					t.Error(err)
					return
				}
				defer unlock()
				sums[i%len(sums)]++
			})
		}
		all.Wait()
		for key, sum := range sums {
			if sum != 100 {
				t.Errorf("key %d: %d additions of 100", key, sum)
			}
		}
	})
}
