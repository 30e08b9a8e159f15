package loader

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/cputime"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// asker is a stream of a test, which numbers its tickets.
type asker struct {
	q      *queue
	ctx    context.Context
	cancel context.CancelFunc
	rows   int
	last   int64
	got    int64 // number of the last ticket that next returned
	taken  []*Pending
}

func newAsker(t *testing.T, q *queue, client, stream string, rows int) *asker {
	caller := resources.Caller{Client: client, Stream: stream}
	ctx, cancel := context.WithCancel(resources.WithCaller(t.Context(), caller))
	t.Cleanup(cancel)
	return &asker{q: q, ctx: ctx, cancel: cancel, rows: rows}
}

// ask puts n tickets of 10 bytes a row.
func (a *asker) ask(n int) {
	for range n {
		a.last++
		t := steps.Ticket{First: a.last, Count: a.rows, RowStride: 1}
		a.q.put(&Pending{ctx: a.ctx, ticket: t, batchMemory: batchMemory{layout: &batchLayout{bytes: 10 * a.rows}}})
	}
}

// give takes one ticket, and notes it for the asker that it is of. It returns nil if no window has room.
func give(t *testing.T, q *queue, askers ...*asker) *asker {
	t.Helper()
	q.mu.Lock()
	p := q.next()
	q.mu.Unlock()
	if p == nil {
		return nil
	}
	for _, a := range askers {
		if a.ctx != p.ctx {
			continue
		}
		if a.got++; p.ticket.First != a.got {
			t.Fatalf("ticket %d comes after %d of its stream", p.ticket.First, a.got-1)
		}
		if p.claim != nil {
			a.taken = append(a.taken, p)
		}
		return a
	}
	t.Fatal("a ticket of nobody")
	return nil
}

// release ends the oldest claim.
func (a *asker) release() {
	a.taken[0].claim.end()
	a.taken = a.taken[1:]
}

// TestGreedyClientLeavesOthersTheirPart: a client with 3,000 tickets ahead gets no more than its part, next to one
// that has three, whether that is another client or another stream of it.
func TestGreedyClientLeavesOthersTheirPart(t *testing.T) {
	for name, other := range map[string]string{"a client": "b", "a stream": "a"} {
		t.Run(name, func(t *testing.T) {
			const batch, inMemory = 320, 4
			q := newQueue(inMemory * batch)
			greedy, modest := newAsker(t, q, "a", "1", 32), newAsker(t, q, other, "2", 32)
			greedy.ask(3000)
			var made []*asker // in memory, in the order of the work
			step := func() *asker {
				for len(made) < inMemory {
					a := give(t, q, greedy, modest)
					if a == nil {
						break
					}
					made = append(made, a)
				}
				a := made[0]
				made = made[1:]
				a.release()
				return a
			}
			for range 10 {
				step() // the greedy one is alone, and has all memory
			}
			if len(greedy.taken) != inMemory-1 {
				t.Errorf("alone it holds %d batches, want %d", len(greedy.taken), inMemory-1)
			}
			modest.ask(3)
			count := map[*asker]int{}
			for range 400 {
				a := step()
				if count[a]++; a == modest {
					modest.ask(1)
				}
			}
			if count[modest] < 160 {
				t.Errorf("the modest one has %d batches of 400, want 0.4 of them", count[modest])
			}
		})
	}
}

// TestClaimsCountLargerBuffers: tickets of many sizes share buffers. The quotas of clients count the bytes of the
// buffers that they hold, and the memory counts all buffers that exist, within its bound.
func TestClaimsCountLargerBuffers(t *testing.T) {
	const bound, limit, floor = 1200, 2000, 400
	b := budget.New(limit)
	alloc, sum, most := tally()
	q := newQueue(bound)
	q.memory = budgeted(t, b, alloc, bound, floor)
	clients := []*asker{newAsker(t, q, "a", "", 0), newAsker(t, q, "b", "", 0)}
	r := rand.New(rand.NewPCG(3, 4))
	var held []*Pending
	larger := 0
	for step := range 5000 {
		for _, a := range clients {
			if len(held) < 8 && r.IntN(2) == 0 {
				a.rows = 10 + r.IntN(11)
				a.ask(1)
			}
			give(t, q, clients...)
		}
		for _, a := range clients {
			for _, p := range a.taken {
				if p.memory == nil {
					p.memory = alloc(p.size())
				} else if len(p.memory.Bytes()) > p.size() {
					larger++
				}
				held = append(held, p)
			}
			a.taken = nil
		}
		if len(held) > 0 && r.IntN(3) > 0 {
			k := r.IntN(len(held))
			held[k].claim.giveBack(held[k].memory, r.IntN(8) > 0)
			held = slices.Delete(held, k, k+1)
		}
		byClient, out := map[any]int64{}, int64(0)
		for _, p := range held {
			byClient[p.client] += int64(len(p.memory.Bytes()))
			out += int64(len(p.memory.Bytes()))
		}
		for _, client := range []string{"a", "b"} {
			if share := q.all.members[client]; share != nil && share.bytesInUse != byClient[client] {
				t.Fatalf("step %d: %q has %d bytes, not %d", step, client, share.bytesInUse, byClient[client])
			}
		}
		m := q.memory
		if m.buffers != sum.Load() || m.idle.Bytes() != sum.Load()-out || m.allowance < sum.Load() {
			t.Fatalf("step %d: %d bytes are counted, %d idle, %d charged; there are %d, and %d are out", step,
				m.buffers, m.idle.Bytes(), m.allowance, sum.Load(), out)
		}
	}
	if most.Load() > bound || larger < 100 {
		t.Errorf("%d bytes of %d; %d buffers were larger than their tickets", most.Load(), bound, larger)
	}
}

// TestWindowsOfBatchesThatNobodyTakes: a client that takes no batch holds its part of the memory. Batches that it keeps
// do not count.
func TestWindowsOfBatchesThatNobodyTakes(t *testing.T) {
	q := newQueue(800)
	still, brisk := newAsker(t, q, "a", "", 8), newAsker(t, q, "b", "", 8)
	still.ask(100)
	brisk.ask(100)
	turn := resources.Caller{Client: "a", Stream: ""}
	if q.othersWait(turn) {
		t.Error("nobody waits for memory, and wanted says so")
	}
	for give(t, q, still, brisk) != nil {
	}
	if len(still.taken) != 5 || len(brisk.taken) != 5 {
		t.Fatalf("windows of %d and %d batches, want 5 of 10", len(still.taken), len(brisk.taken))
	}
	for range 30 {
		brisk.release()
		if a := give(t, q, still, brisk); a != brisk {
			t.Fatal("the window of the other one has no room")
		}
	}
	still.taken[0].claim.end()
	still.taken[0].claim.end() // the second time says nothing
	if a := give(t, q, still, brisk); a != still || give(t, q, still, brisk) != nil {
		t.Error("a batch that is kept leaves room for one")
	}
}

// TestWindowsUnderPressure: while there is less memory than the bound, windows are parts of what there is, so that a
// client which takes none of its batches does not hold what another one would get.
func TestWindowsUnderPressure(t *testing.T) {
	q := newQueue(800)
	pressed := true
	q.now = func() int64 {
		if pressed {
			return 160
		}
		return 800
	}
	still, brisk := newAsker(t, q, "still", "s", 8), newAsker(t, q, "brisk", "s", 8)
	still.ask(20)
	brisk.ask(20)
	for give(t, q, still, brisk) != nil {
	}
	if len(still.taken) != 1 || len(brisk.taken) != 1 {
		t.Fatalf("windows of %d and %d batches of 2", len(still.taken), len(brisk.taken))
	}
	for range 10 {
		brisk.release()
		if give(t, q, still, brisk) != brisk {
			t.Fatal("the one that takes its batches gets none")
		}
	}
	pressed = false
	for give(t, q, still, brisk) != nil {
	}
	if len(still.taken) != 5 || len(brisk.taken) != 5 {
		t.Errorf("windows of %d and %d batches of 10", len(still.taken), len(brisk.taken))
	}
}

// TestSmallTicketsLeaveRoomForLargeOnes: a ticket that takes most of the memory gets it, although another client always
// has small ones that would fit. Once it is cancelled, nobody waits for it.
func TestSmallTicketsLeaveRoomForLargeOnes(t *testing.T) {
	q := newQueue(1000)
	q.memory = newMemory(1000, batch.NewHeap, nil, 0, q.poke)
	large, small := newAsker(t, q, "large", "", 80), newAsker(t, q, "small", "", 10)
	release := func(a *asker) {
		q.memory.give(batch.NewHeap(10*a.rows), false)
		a.release()
	}
	small.ask(100)
	for give(t, q, large, small) != nil {
	}
	large.ask(2)
	for i := 0; len(large.taken) == 0; i++ {
		if i > 20 {
			t.Fatal("20 batches have come back, and the large ticket still waits")
		}
		release(small)
		give(t, q, large, small)
	}
	release(large)
	for len(small.taken) < 3 {
		if give(t, q, large, small) == nil {
			break
		}
	}
	large.cancel()
	for a := large; a == large; {
		if a = give(t, q, large, small); a == nil {
			t.Fatal("the small tickets wait for one that is cancelled")
		}
	}
}

// TestSmallWindows: where memory has no batch for each, each may have one.
func TestSmallWindows(t *testing.T) {
	q := newQueue(160)
	var all []*asker
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		a := newAsker(t, q, name, "", 8)
		a.ask(3)
		all = append(all, a)
	}
	for range all {
		give(t, q, all...)
	}
	for _, a := range all {
		if len(a.taken) != 1 {
			t.Errorf("a client has %d batches, want 1", len(a.taken))
		}
	}
}

// TestCancelledTicketsLeaveAtOnce: 100,000 cancelled tickets take time in proportion to their number, and hold up
// another client by one each time that it is its turn.
func TestCancelledTicketsLeaveAtOnce(t *testing.T) {
	const n = 100_000
	q := newQueue(1000)
	gone, other := newAsker(t, q, "a", "", 8), newAsker(t, q, "b", "", 8)
	gone.ask(n)
	other.ask(1)
	gone.cancel()
	begin := cputime.Used()
	for range n + 1 {
		if give(t, q, gone, other) == nil {
			t.Fatal("tickets are left")
		}
	}
	// 0.1 s, and 1.2 s with the race detector; time in proportion to the square of their number is hours.
	if d := cputime.Used() - begin; d > time.Minute {
		t.Errorf("%v of processor time", d)
	}
	other.release()
	if q.all.turns.Len() != 0 || len(q.all.members) != 0 {
		t.Errorf("%d clients are left, of whom %d wait", len(q.all.members), q.all.turns.Len())
	}
}

// TestQueueLosesNothing: whatever comes, goes and is cancelled, all tickets leave in the order of their stream, windows
// are kept, and nothing is left.
func TestQueueLosesNothing(t *testing.T) {
	race.SkipCovered(t)
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 9))
		q := newQueue(1000)
		var all, live []*asker
		for step := range 2000 {
			switch k := r.IntN(10); {
			case k == 0 && step < 1500 || len(live) == 0:
				a := newAsker(t, q, string(rune('a'+r.IntN(4))), string(rune('0'+len(all))), 1+r.IntN(16))
				all, live = append(all, a), append(live, a)
			case k < 4 && step < 1500:
				live[r.IntN(len(live))].ask(1 + r.IntN(5))
			case k == 4 && len(live) > 1:
				i := r.IntN(len(live))
				live[i].cancel()
				live = append(live[:i:i], live[i+1:]...)
			case k < 7:
				if a := all[r.IntN(len(all))]; len(a.taken) > 0 {
					a.release()
				}
			default:
				give(t, q, all...)
			}
			checkShares(t, q)
		}
		for give(t, q, all...) != nil || drain(all) {
		}
		for _, a := range all {
			if a.got != a.last {
				t.Fatalf("seed %d: %d tickets of %d", seed, a.got, a.last)
			}
		}
		if len(q.all.members) != 0 {
			t.Fatalf("seed %d: %d clients are left", seed, len(q.all.members))
		}
	}
}

// drain releases what is held, and reports whether there was anything.
func drain(all []*asker) (any bool) {
	for _, a := range all {
		for len(a.taken) > 0 {
			a.release()
			any = true
		}
	}
	return any
}

// checkShares compares what clients hold with the sum over their streams.
func checkShares(t *testing.T, q *queue) {
	t.Helper()
	for _, c := range q.all.members {
		sum := int64(0)
		for _, s := range c.members {
			sum += s.bytesInUse
			if (s.place == nil) != (s.first == nil) || s.place == nil && s.bytesInUse == 0 {
				t.Fatal("a stream waits without a ticket, or the other way round, or is there for nothing")
			}
		}
		if sum != c.bytesInUse || (c.place == nil) != (c.turns.Len() == 0) {
			t.Fatalf("the streams of a client hold %d bytes, it %d", sum, c.bytesInUse)
		}
	}
}
