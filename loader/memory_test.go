package loader

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/loader/batch"
)

// tallied is a buffer of which a test knows how many bytes there are.
type tallied struct {
	b   []byte
	sum *atomic.Int64
}

func (t tallied) Bytes() []byte { return t.b }
func (t tallied) Free()         { t.sum.Add(-int64(len(t.b))) }

// tally returns an allocator that counts the bytes there are, and the most there ever were.
func tally() (alloc func(n int) batch.Buffer, sum, most *atomic.Int64) {
	sum, most = new(atomic.Int64), new(atomic.Int64)
	return func(n int) batch.Buffer {
		now := sum.Add(int64(n))
		for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
		}
		return tallied{make([]byte, n), sum}
	}, sum, most
}

// budgeted returns a memory with a floor that is charged to b.
func budgeted(t *testing.T, b *budget.Budget, alloc func(n int) batch.Buffer, bound, floor int64) *batchPool {
	t.Helper()
	if err := b.Acquire(t.Context(), floor); err != nil {
		t.Fatal(err)
	}
	m := newMemory(bound, alloc, b, floor, func() {})
	t.Cleanup(m.close)
	return m
}

// try takes n bytes, if there is room.
func try(m *batchPool, n int) batch.Buffer {
	b, ok := m.take(n, nil, 0)
	if ok && b == nil {
		b = m.alloc(n)
	}
	return b
}

// mustTake takes n bytes.
func mustTake(t *testing.T, m *batchPool, n int) batch.Buffer {
	t.Helper()
	b := try(m, n)
	if b == nil {
		t.Fatalf("no room for %d bytes", n)
	}
	return b
}

// TestMemoriesShareABudget: engines together hold no more than the budget, whatever their own bounds allow. Each goes
// on with its floor, and a request that waits gets the memory that engines have beyond.
func TestMemoriesShareABudget(t *testing.T) {
	const limit, floor, size = 8000, 800, 400
	b := budget.New(limit)
	alloc, sum, most := tally()
	var done sync.WaitGroup
	for i := range 4 {
		m := budgeted(t, b, alloc, 100*size, floor)
		r := rand.New(rand.NewPCG(2, uint64(i)))
		done.Go(func() {
			var held []batch.Buffer
			for range 500 {
				if len(held) < 2 || r.IntN(2) == 0 && len(held) < 8 {
					if got := try(m, size); got != nil {
						held = append(held, got)
					} else if len(held) < 2 {
						t.Error("no room within the floor")
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
	b := budget.New(8000) // 7,000 without the reserve
	alloc, _, _ := tally()
	unread, read := budgeted(t, b, alloc, 8000, 1000), budgeted(t, b, alloc, 8000, 1000)
	fill := func(m *batchPool, keep int) {
		var all []batch.Buffer
		for range 3 {
			all = append(all, mustTake(t, m, 1000))
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

// TestRefusedTickets: a ticket fails with the budget's refusal only if there is no room for it. Batches may have come
// back since it was asked for, or be about to.
func TestRefusedTickets(t *testing.T) {
	refused := errors.New("not free for 1m0s")
	for _, c := range []struct {
		floor  int64
		coming int64
		fails  bool
	}{{100, 0, false}, {99, 0, true}, {99, 1, false}} {
		b := budget.New(8000)
		alloc, _, _ := tally()
		q := newQueue(1000)
		q.memory = budgeted(t, b, alloc, 1000, c.floor)
		q.coming.Add(c.coming)
		if err := b.Acquire(t.Context(), b.Limit()-b.Limit()/8-b.Used()); err != nil {
			t.Fatal(err)
		}
		a := newAsker(t, q, "a", "", 10)
		a.ask(1)
		q.mu.Lock()
		stream := q.all.members["a"].members[""]
		p := stream.first
		stream.of.asks = true
		q.mu.Unlock()
		if got := q.endAsk(stream, p, refused); got != c.fails {
			t.Errorf("with a floor of %d bytes for 100, the ticket fails: %t", c.floor, got)
		}
		if c.coming > 0 {
			a.cancel()
		}
		if !c.fails && give(t, q, a) == nil {
			t.Error("the ticket gets no memory")
		}
		q.failAll()
	}
}

// TestLeasesLeaveRoom: a batch is lent only if there is room for one more, in the engine and in the budget.
func TestLeasesLeaveRoom(t *testing.T) {
	b := budget.New(8000)
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
		mustTake(t, m, 1000)
	}
	m.give(mustTake(t, m, 1000), true)
	m.returned(1000, 1000)
	m.returned(1000, 1000)
	b.Release(4000)
}
