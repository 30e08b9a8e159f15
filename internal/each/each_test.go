package each

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
)

// TestOf promises one call for each number, the error of a call, and that of a caller who left, whatever the calls
// return.
func TestOf(t *testing.T) {
	var sum atomic.Int64
	add := func(_ context.Context, i int64) error {
		sum.Add(i)
		return nil
	}
	if err := Of(t.Context(), 101, 4, add); err != nil || sum.Load() != 5050 {
		t.Errorf("the numbers up to 100 have the sum %d, %v", sum.Load(), err)
	}
	broken := errors.New("broken")
	err := Of(t.Context(), 101, 4, func(_ context.Context, i int64) error {
		if i == 50 {
			return broken
		}
		return nil
	})
	if !errors.Is(err, broken) {
		t.Errorf("%v, want the error of a call", err)
	}
	if err := Of(t.Context(), 3, 4, func(context.Context, int64) error { panic("no") }); err == nil {
		t.Error("a panic is no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = Of(ctx, 1000, 1, func(_ context.Context, i int64) error {
		if i == 500 {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that the caller left", err)
	}
}
