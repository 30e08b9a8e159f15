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

// TestValue: of many that ask, one makes the value of a key; after an error the next one makes it.
func TestValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var values Values[int, int]
		var all sync.WaitGroup
		calls := make([]int, 3) // each key's calls are alone
		for i := range 300 {
			all.Go(func() {
				key := i % len(calls)
				got, err := values.Get(t.Context(), key, func() (int, error) {
					if calls[key]++; calls[key] == 1 {
						return 0, errors.ErrUnsupported
					}
					return key * 10, nil
				})
				if err == nil && got != key*10 || err != nil && !errors.Is(err, errors.ErrUnsupported) {
					t.Errorf("key %d: %d, %v", key, got, err)
				}
			})
		}
		all.Wait()
		for key, n := range calls {
			if n != 2 {
				t.Errorf("key %d: made %d times", key, n)
			}
		}
	})
	var value Value[string]
	if _, ok := value.Known(); ok {
		t.Error("a value that was not made is known")
	}
	unlock, err := value.making.Lock(t.Context(), struct{}{}) // as a caller that hangs
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := value.Get(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a wait that is given up: %v", err)
	}
	value.Set("set")
	if got, err := value.Get(t.Context(), nil); got != "set" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}
