package budget

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chaski-eo/chaski/fault"
)

// TestWhatIsLargerThanTheBudget: it is refused at once, with the flag's name.
func TestWhatIsLargerThanTheBudget(t *testing.T) {
	b := New(800)
	if err := b.Acquire(t.Context(), 701); fault.KindOf(err) != fault.Limit {
		t.Errorf("%v", err)
	}
	a, err := b.Open(t.Context(), 700)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Grow(t.Context(), 801); fault.KindOf(err) != fault.Limit {
		t.Errorf("%v", err)
	}
	if b.Used() != 700 {
		t.Errorf("%d bytes are charged", b.Used())
	}
	a.Close()
	if a.Close(); b.Used() != 0 {
		t.Errorf("%d bytes are charged", b.Used())
	}
}

// TestFirstComeFirstServed: a request that fits does not pass one that does not, and one that gives up makes room.
func TestFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(800)
		first, _ := b.Open(t.Context(), 600)
		ctx, cancel := context.WithCancel(t.Context())
		var passed atomic.Int64
		var done sync.WaitGroup
		done.Go(func() {
			if err := b.Acquire(ctx, 200); !errors.Is(err, context.Canceled) {
				t.Errorf("%v", err)
			}
			passed.Add(1)
		})
		synctest.Wait()
		done.Go(func() {
			if err := b.Acquire(t.Context(), 50); err != nil {
				t.Error(err)
			}
			passed.Add(1)
		})
		synctest.Wait()
		if passed.Load() != 0 || b.Waiting() != 2 || b.TryAcquire(1) {
			t.Errorf("%d waiters passed, %d wait", passed.Load(), b.Waiting())
		}
		cancel()
		done.Wait()
		if passed.Load() != 2 || b.Used() != 650 {
			t.Errorf("%d are done, %d bytes are charged", passed.Load(), b.Used())
		}
		first.Close()
		b.Release(50)
	})
}

// TestBatchesComeFirst: while a request waits that is larger than what is free, batches that fit are served.
func TestBatchesComeFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(800)
		first, _ := b.Open(t.Context(), 600)
		read := make(chan error, 1)
		go func() { read <- b.Acquire(t.Context(), 200) }()
		synctest.Wait()
		begin := time.Now()
		if err := b.AcquireBatch(t.Context(), 100); err != nil || time.Since(begin) > 0 {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		batch := make(chan error, 1)
		go func() { batch <- b.AcquireBatch(t.Context(), 100) }()
		synctest.Wait()
		b.Release(100)
		if err := <-batch; err != nil || len(read) > 0 {
			t.Errorf("%v, and the read is served before", err)
		}
		first.Close()
		if err := <-read; err != nil {
			t.Error(err)
		}
		if b.Release(300); b.Used() != 0 || b.Waiting() != 0 {
			t.Errorf("%d bytes are charged, %d wait", b.Used(), b.Waiting())
		}
	})
}

// TestWaitingEnds: a request does not wait for ever for memory that is never given back.
func TestWaitingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(800)
		a, _ := b.Open(t.Context(), 600)
		begin := time.Now()
		if err := b.Acquire(t.Context(), 200); fault.KindOf(err) != fault.Limit {
			t.Errorf("%v", err)
		}
		if d := time.Since(begin); d != waitFor {
			t.Errorf("after %v", d)
		}
		a.Close()
		if b.Used() != 0 || b.Waiting() != 0 {
			t.Errorf("%d bytes are charged, %d wait", b.Used(), b.Waiting())
		}
	})
}

// TestAccountsThatGrowDoNotWaitForEachOther: two accounts fill the budget and both need more. One of them is refused
// after a while, and the other goes on.
func TestAccountsThatGrowDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(800)
		begin := time.Now()
		var done sync.WaitGroup
		var refused atomic.Int64
		for range 2 {
			a, err := b.Open(t.Context(), 350)
			if err != nil {
				t.Fatal(err)
			}
			done.Go(func() {
				defer a.Close()
				for range 10 {
					if err := a.Grow(t.Context(), 20); fault.KindOf(err) == fault.Limit {
						refused.Add(1)
						return
					} else if err != nil {
						t.Error(err)
					}
				}
			})
		}
		done.Wait()
		if b.Used() != 0 || refused.Load() != 1 || time.Since(begin) != growFor {
			t.Errorf("%d are refused, %d bytes are charged after %v", refused.Load(), b.Used(), time.Since(begin))
		}
	})
}

// keeper is a holder of memory at one level.
type keeper struct {
	b     *Budget
	level Level
	n     int64
	freed atomic.Int64
	log   *[]Level
}

func (k *keeper) Reclaim(l Level) bool {
	if l == k.level && k.n > 0 {
		*k.log = append(*k.log, l)
		n := k.n
		k.n = 0
		k.b.Release(n)
	}
	return false
}

func (k *keeper) Freed() { k.freed.Add(1) }

// TestWhatNobodyUsesGoesFirst: holders give memory back level by level, and no more than is needed.
func TestWhatNobodyUsesGoesFirst(t *testing.T) {
	b := New(800)
	var log []Level
	for _, l := range []Level{Closed, Idle, Unused} {
		if !b.TryAcquire(200) {
			t.Fatal("no room")
		}
		defer b.Join(&keeper{b: b, level: l, n: 200, log: &log})()
	}
	a, err := b.Open(t.Context(), 450)
	if err != nil || len(log) != 2 || log[0] != Unused || log[1] != Idle {
		t.Fatalf("%v, %v", log, err)
	}
	if err := a.Grow(t.Context(), 200); err != nil || len(log) != 3 {
		t.Errorf("%v, %v", log, err)
	}
	a.Close()
	if b.Used() != 0 {
		t.Errorf("%d bytes are charged", b.Used())
	}
}

// late is a holder that has something to give only after a while, as an engine does whose last user leaves.
type late struct {
	b     *Budget
	ready atomic.Bool
}

func (h *late) Reclaim(l Level) bool {
	if l == Closed && h.ready.CompareAndSwap(true, false) {
		h.b.Release(600)
	}
	return false
}

func (*late) Freed() {}

// TestWhatIsOfferedLaterIsTaken: requests that wait, in the queue or to grow, get what a holder can give only later.
func TestWhatIsOfferedLaterIsTaken(t *testing.T) {
	for name, ask := range map[string]func(context.Context, *Budget) (*Account, error){
		"queue": func(ctx context.Context, b *Budget) (*Account, error) { return b.Open(ctx, 500) },
		"grow": func(ctx context.Context, b *Budget) (*Account, error) {
			a, err := b.Open(ctx, 50)
			if err != nil {
				return nil, err
			}
			return a, a.Grow(ctx, 500)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := New(800)
				h := &late{b: b}
				defer b.Join(h)()
				if !b.TryAcquire(600) {
					t.Fatal("no room")
				}
				time.AfterFunc(time.Second, func() { h.ready.Store(true); b.Offer() })
				begin := time.Now()
				a, err := ask(t.Context(), b)
				if d := time.Since(begin); err != nil || d != time.Second {
					t.Errorf("%v after %v", err, d)
				}
				a.Close()
				if b.Used() != 0 || b.Waiting() != 0 {
					t.Errorf("%d bytes are charged, %d wait", b.Used(), b.Waiting())
				}
			})
		})
	}
}

// self is a holder that asks for memory in a call of its own, and whose end waits for that call, as an engine's does.
type self struct {
	cancel context.CancelFunc
	done   chan struct{}
}

func (h *self) Reclaim(l Level) bool {
	if l == Closed {
		h.cancel()
		<-h.done
	}
	return false
}

func (*self) Freed() {}

// TestHoldersMayEndWhileTheyWait: a holder whose own request asks it to end does not wait for itself.
func TestHoldersMayEndWhileTheyWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(800)
		if !b.TryAcquire(700) {
			t.Fatal("no room")
		}
		ctx, cancel := context.WithCancel(t.Context())
		h := &self{cancel, make(chan struct{})}
		defer b.Join(h)()
		go func() {
			defer close(h.done)
			if err := b.Acquire(ctx, 100); !errors.Is(err, context.Canceled) {
				t.Errorf("%v", err)
			}
		}()
		<-h.done
	})
}

// TestManyAtOnce: requests of all kinds end, and the sum never passes the limit.
func TestManyAtOnce(t *testing.T) {
	b := New(10_000)
	b.queued = time.Hour
	b.grow = time.Millisecond // a request that is refused is as good here as one that waits
	var sum atomic.Int64
	add := func(n int64) {
		if now := sum.Add(n); now > b.limit {
			t.Errorf("%d bytes of %d", now, b.limit)
		}
	}
	var done sync.WaitGroup
	for i := range 16 {
		r := rand.New(rand.NewPCG(1, uint64(i)))
		done.Go(func() {
			for range 200 {
				first := r.Int64N(3000)
				a, err := b.Open(t.Context(), first)
				if err != nil {
					t.Error(err)
					return
				}
				add(first)
				held := first
				for range r.IntN(5) {
					n := r.Int64N(1000)
					if a.Grow(t.Context(), n) == nil {
						add(n)
						held += n
					}
				}
				sum.Add(-held)
				a.Close()
				if n := r.Int64N(500); b.TryAcquire(n) {
					add(n)
					sum.Add(-n)
					b.Release(n)
				}
			}
		})
	}
	done.Wait()
	if b.Used() != 0 || b.Waiting() != 0 {
		t.Errorf("%d bytes are charged, %d wait", b.Used(), b.Waiting())
	}
}

// TestNoBudget: without a budget nothing is bounded.
func TestNoBudget(t *testing.T) {
	var b *Budget
	a, err := b.Open(t.Context(), 1<<60)
	if err != nil || a.Grow(With(t.Context(), a), 1<<60) != nil || Grow(t.Context(), 1) != nil || !b.TryAcquire(1<<60) {
		t.Error(err)
	}
	a.Shrink(1)
	a.Take(1)
	a.Close()
	b.Release(1 << 60)
	b.Offer()
	b.Join(nil)()
	if b.Used()+b.Limit()+b.Waiting()+a.Held() != 0 {
		t.Error("nil has figures")
	}
}
