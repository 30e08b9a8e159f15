package each

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	_ "github.com/chaski-eo/chaski/tools/testkit/seed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
	if err := Of(t.Context(), 0, 4, add); err != nil {
		t.Errorf("no numbers: %v", err)
	}
	if err := Of(t.Context(), 3, 4, func(context.Context, int64) error { panic("no") }); err == nil {
		t.Error("a panic is no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := Of(ctx, 1000, 1, func(_ context.Context, i int64) error {
		if i == 500 {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that the caller left", err)
	}
	if err := Of(ctx, 0, 1, add); err != nil {
		t.Errorf("no numbers after the caller left: %v", err)
	}
}

// TestFirstError promises the error of the lowest number that fails, whichever call ends first, and that every number
// below it was called.
func TestFirstError(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "n")
		workers := rapid.IntRange(1, 8).Draw(t, "workers")
		fails := rapid.SliceOfN(rapid.Bool(), n, n).Draw(t, "fails")
		pauses := rapid.SliceOfN(rapid.IntRange(0, 50), n, n).Draw(t, "pauses")
		called := make([]atomic.Bool, n)
		err := Of(context.Background(), int64(n), workers, func(_ context.Context, i int64) error {
			called[i].Store(true)
			time.Sleep(time.Duration(pauses[i]) * time.Microsecond)
			if fails[i] {
				return fmt.Errorf("number %d", i)
			}
			return nil
		})
		want, below := "<nil>", n
		for i, bad := range fails {
			if bad {
				want, below = fmt.Sprintf("number %d", i), i
				break
			}
		}
		if got := fmt.Sprint(err); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
		for i := range below {
			if !called[i].Load() {
				t.Fatalf("number %d was not called", i)
			}
		}
	})
}

// TestEnds promises that an error ends the contexts of the calls behind it, and not of those before it.
func TestEnds(t *testing.T) {
	began, failed := make(chan bool, 2), make(chan bool)
	var before error
	err := Of(t.Context(), 3, 3, func(ctx context.Context, i int64) error {
		switch i {
		case 0:
			<-failed // number 2 has noticed the error of number 1
			before = ctx.Err()
		case 1:
			<-began
			return errors.New("number 1")
		case 2:
			began <- true
			<-ctx.Done()
			close(failed)
			return ctx.Err()
		}
		return nil
	})
	if err == nil || err.Error() != "number 1" || before != nil {
		t.Errorf("%v, and the context of number 0 has %v", err, before)
	}
}

// TestShare promises that workers get all items once, and that a worker which fails before it takes one fails all.
func TestShare(t *testing.T) {
	letters := func(yield func(string) bool) {
		for _, s := range []string{"a", "b", "c", "d"} {
			if !yield(s) {
				return
			}
		}
	}
	var got [3]string
	err := Share(t.Context(), letters, len(got), func(_ context.Context, w int, items iter.Seq[string]) error {
		for s := range items {
			got[w] += s
		}
		return nil
	})
	if all := got[0] + got[1] + got[2]; err != nil || len(all) != 4 {
		t.Errorf("%q, %v", got, err)
	}
	err = Share(t.Context(), Numbers(100), 2, func(_ context.Context, w int, items iter.Seq[int64]) error {
		if w == 1 {
			return errors.New("no memory")
		}
		for range items {
			time.Sleep(time.Microsecond)
		}
		return errors.New("the last one")
	})
	if err == nil || err.Error() != "no memory" {
		t.Errorf("%v, want the worker that could not begin", err)
	}
}
