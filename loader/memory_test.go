package loader

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/chaski-eo/chaski/internal/budget"
)

// tallied is a buffer of which a test knows how many bytes there are.
type tallied struct {
	b   []byte
	sum *atomic.Int64
}

func (t tallied) Bytes() []byte { return t.b }
func (t tallied) Free()         { t.sum.Add(-int64(len(t.b))) }

// tally returns an allocator that counts the bytes there are, and the most there ever were.
func tally() (alloc func(n int) Buffer, sum, most *atomic.Int64) {
	sum, most = new(atomic.Int64), new(atomic.Int64)
	return func(n int) Buffer {
		now := sum.Add(int64(n))
		for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
		}
		return tallied{make([]byte, n), sum}
	}, sum, most
}

// budgeted returns a memory with a floor that is charged to b.
func budgeted(t *testing.T, b *budget.Budget, alloc func(n int) Buffer, bound, floor int64) *memory {
	t.Helper()
	if err := b.Acquire(t.Context(), floor); err != nil {
		t.Fatal(err)
	}
	m := newMemory(bound, alloc, b, floor)
	t.Cleanup(m.close)
	return m
}

// TestMemoriesShareABudget: engines together hold no more than the budget, whatever their own bounds allow. Each goes
// on with its floor, and a request that waits gets the memory that engines have beyond.
func TestMemoriesShareABudget(t *testing.T) {
	const limit, floor, size = 8000, 800, 400
	b := budget.New(limit, nil)
	alloc, sum, most := tally()
	var done sync.WaitGroup
	for i := range 4 {
		m := budgeted(t, b, alloc, 100*size, floor)
		r := rand.New(rand.NewPCG(2, uint64(i)))
		done.Go(func() {
			var held []Buffer
			for range 500 {
				if len(held) < 2 || r.IntN(2) == 0 && len(held) < 8 {
					ctx, cancel := context.WithCancel(t.Context())
					if len(held) > 1 {
						cancel() // beyond the floor it takes only what is free
					}
					got, err := m.take(ctx, size)
					cancel()
					if err == nil {
						held = append(held, got)
					} else if len(held) < 2 {
						t.Errorf("no room within the floor: %v", err)
					}
					continue
				}
				m.give(held[0], r.IntN(4) > 0)
				held = held[1:]
			}
			for _, h := range held {
				m.give(h, true)
			}
		})
	}
	done.Go(func() {
		for range 50 {
			if err := b.Acquire(t.Context(), 2000); err != nil {
				t.Error(err)
				return
			}
			sum.Add(2000)
			sum.Add(-2000)
			b.Release(2000)
		}
	})
	done.Wait()
	if most.Load() > limit {
		t.Errorf("%d bytes of %d", most.Load(), limit)
	}
}

// TestIdleMemoryOfUnreadEnginesGoesFirst: what a request needs comes from an engine that nobody reads, and then from
// idle memory of the others. Floors and batches that are out stay.
func TestIdleMemoryOfUnreadEnginesGoesFirst(t *testing.T) {
	b := budget.New(8000, nil) // 7,000 without the reserve
	alloc, _, _ := tally()
	unread, read := budgeted(t, b, alloc, 8000, 1000), budgeted(t, b, alloc, 8000, 1000)
	fill := func(m *memory, keep int) {
		var all []Buffer
		for range 3 {
			got, err := m.take(t.Context(), 1000)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, got)
		}
		for _, g := range all[keep:] {
			m.give(g, true)
		}
	}
	fill(read, 2)
	fill(unread, 0)
	for _, c := range []struct{ n, unread, read int64 }{{1000, 3000, 3000}, {1000, 1000, 3000}, {2000, 1000, 2000}} {
		if err := b.Acquire(t.Context(), c.n); err != nil {
			t.Fatal(err)
		}
		one, _ := unread.counts()
		other, _ := read.counts()
		if one != c.unread || other != c.read {
			t.Errorf("after %d bytes more: %d and %d bytes are kept, not %d and %d", c.n, one, other, c.unread, c.read)
		}
	}
	b.Release(4000)
	read.mu.Lock()
	read.closed = true
	read.mu.Unlock()
}

// TestBatchOverTheFloor: a batch that the floor does not hold waits in the queue, and comes when others have ended.
func TestBatchOverTheFloor(t *testing.T) {
	b := budget.New(8000, nil)
	alloc, _, _ := tally()
	m := budgeted(t, b, alloc, 8000, 500)
	if err := b.Acquire(t.Context(), 6000); err != nil {
		t.Fatal(err)
	}
	got := make(chan Buffer)
	go func() {
		one, err := m.take(t.Context(), 3000)
		if err != nil {
			t.Error(err)
		}
		got <- one
	}()
	for b.Waiting() == 0 {
	}
	b.Release(6000)
	m.give(<-got, false)
	if b.Used() != 500 {
		t.Errorf("%d bytes are charged", b.Used())
	}
}

// TestLeasesLeaveRoom: a batch is lent only if there is room for one more, in the engine and in the budget.
func TestLeasesLeaveRoom(t *testing.T) {
	b := budget.New(8000, nil)
	alloc, _, _ := tally()
	m := budgeted(t, b, alloc, 4000, 1000)
	if err := b.Acquire(t.Context(), 4000); err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, true, false} { // 2,000 and 3,000 of the 3,000 bytes
		if got := m.lend(1000, 1000); got != want {
			t.Errorf("lease %d: %t", i, got)
		}
	}
	for range 2 { // the leases, which stay
		if _, err := m.take(t.Context(), 1000); err != nil {
			t.Fatal(err)
		}
	}
	one, err := m.take(t.Context(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	m.give(one, true)
	m.returned(1000, 1000)
	m.returned(1000, 1000)
	b.Release(4000)
}
