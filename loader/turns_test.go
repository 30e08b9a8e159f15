package loader

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chaski-eo/chaski/internal/turns"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/shuffle"
)

// TestEnginesShareTurns: the workers of two engines decode one at a time where there is one turn, none while somebody
// else has it, and both end.
func TestEnginesShareTurns(t *testing.T) { synctest.Test(t, testEnginesShareTurns) }

func testEnginesShareTurns(t *testing.T) {
	all := turns.New(1, 1)
	if !all.Try("other") {
		t.Fatal("no turn")
	}
	var pending []*Pending
	stages := &resources.Stages{}
	for _, client := range []string{"a", "b"} {
		e, err := Open(t.Context(), Spec{Source: "../testdata/demo", BatchSize: 1},
			Options{Turns: all, Stages: stages})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		ctx := resources.WithTurn(t.Context(), resources.Turn{Client: client})
		pending = append(pending, e.Start(ctx, shuffle.StepTicket(0, 0, 1, 0, 1), false))
	}
	synctest.Wait()
	if n := all.Waiting(); n < 2 {
		t.Errorf("%d workers wait for their turn, want some of both engines", n)
	}
	if n, _ := stages.Decoded(); n != 0 {
		t.Errorf("%d chunks were decoded without a turn", n)
	}
	all.Leave("other")
	for _, p := range pending {
		wait(t, p).Release()
	}
	if n, _ := stages.Decoded(); n == 0 {
		t.Error("nothing was decoded")
	}
}

// TestClientsThatReleaseNothing: while others wait for the budget, clients that release none of their batches hold what
// an engine has of it. Another client of the engine gets its batches at once all the same: the budget has room for some
// seats, which it gives to the client that has been given least. The seats go back when the client has gone.
func TestClientsThatReleaseNothing(t *testing.T) { synctest.Test(t, testClientsThatReleaseNothing) }

func testClientsThatReleaseNothing(t *testing.T) {
	b := resources.NewBudget(1 << 30)
	e, err := Open(t.Context(), Spec{Source: "../testdata/demo", BatchSize: 1}, Options{Budget: b})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	of := func(client string) context.Context {
		return resources.WithTurn(t.Context(), resources.Turn{Client: client})
	}
	start := func(client string) *Pending {
		return e.Start(of(client), shuffle.StepTicket(0, 0, 1, 0, 1), false)
	}
	batch := e.BatchBytes()
	opened := b.Used()
	ballast := b.Limit() - b.Limit()/8 - opened - 12*batch
	if err := b.Acquire(t.Context(), ballast); err != nil {
		t.Fatal(err)
	}
	big, cancel := context.WithCancel(of("big"))
	gone := make(chan error, 1)
	go func() { gone <- b.Acquire(big, 40*batch) }()
	synctest.Wait()
	if b.Waiting() != 1 {
		t.Fatalf("nobody waits for %d bytes", 40*batch)
	}
	var still []*Pending
	for _, client := range []string{"a", "b"} {
		for range 5 {
			still = append(still, start(client))
		}
	}
	synctest.Wait()
	begin := time.Now()
	for i := range 5 {
		p, next := start("c"), start("c")
		wait(t, p).Release()
		wait(t, next).Release()
		if d := time.Since(begin); d > 0 { // the clock of synctest runs only while nothing else does
			t.Fatalf("batch %d comes after %v", i, d)
		}
	}
	time.Sleep(2 * seatsKept)
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("the large request ends with %v", err)
	}
	for _, p := range still {
		p.Cancel()
	}
	synctest.Wait()
	time.Sleep(2 * seatsKept)
	b.Release(ballast)
	e.Trim()
	if n := b.Used(); n != opened {
		t.Errorf("%d bytes are charged at the end, %d after opening", n, opened)
	}
}

// TestSeatsOutlastTheirBatches: clients hold more of an engine than its floor, from before others waited for the
// budget, and release nothing. Another client keeps the seat that it waited for, for one batch after the other; nothing
// else is free. What comes free goes to a client of another dataset that has been given less, and keeps its seat, too.
func TestSeatsOutlastTheirBatches(t *testing.T) { synctest.Test(t, testSeatsOutlastTheirBatches) }

func testSeatsOutlastTheirBatches(t *testing.T) {
	b := resources.NewBudget(1 << 30)
	of := func(client string) context.Context {
		return resources.WithTurn(t.Context(), resources.Turn{Client: client})
	}
	start := func(e *Engine, client string) *Pending {
		return e.Start(of(client), shuffle.StepTicket(0, 0, 1, 0, 1), false)
	}
	var engines []*Engine
	for range 2 {
		e, err := Open(t.Context(), Spec{Source: "../testdata/demo", BatchSize: 1}, Options{Budget: b})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		engines = append(engines, e)
	}
	one, other, batch, opened := engines[0], engines[1], engines[0].BatchBytes(), b.Used()
	var still []*Pending
	for range 5 {
		still = append(still, start(one, "a"), start(one, "b"), start(other, "a"))
	}
	synctest.Wait()
	free := func() int64 { return b.Limit() - b.Limit()/8 - b.Used() }
	ballast := free() - batch
	if err := b.Acquire(t.Context(), ballast); err != nil {
		t.Fatal(err)
	}
	big, cancel := context.WithCancel(of("big"))
	gone := make(chan error, 1)
	go func() { gone <- b.Acquire(big, 40*batch) }()
	synctest.Wait()
	reads := func(e *Engine, client string, batches int) *Pending { // with two tickets at a time
		begin, p := time.Now(), start(e, client)
		for i := range batches {
			next := start(e, client)
			synctest.Wait() // the dispatcher may ask for another seat
			wait(t, p).Release()
			if d := time.Since(begin); d > 0 { // the clock of synctest runs only while nothing else does
				t.Fatalf("batch %d of %s comes after %v", i, client, d)
			}
			p = next
		}
		return p
	}
	last := reads(one, "c", 8) // it may ask for up to four seats
	synctest.Wait()
	last.Cancel()
	waits := start(other, "d")
	more := start(one, "c")
	synctest.Wait()
	select {
	case <-waits.done:
		t.Error("a client has memory, and none is free")
	default:
	}
	b.Release(batch)
	ballast -= batch
	synctest.Wait()
	wait(t, waits).Release()
	wait(t, more).Release()
	still = append(still, reads(other, "d", 8), reads(one, "c", 2))
	if n := free(); n < 0 {
		t.Errorf("%d bytes are charged beyond the budget", -n)
	}
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("the large request ends with %v", err)
	}
	for _, p := range still {
		p.Cancel()
	}
	synctest.Wait()
	time.Sleep(2 * seatsKept)
	b.Release(ballast)
	one.Trim()
	other.Trim()
	if n := b.Used(); n != opened {
		t.Errorf("%d bytes are charged at the end, %d after opening", n, opened)
	}
}

// TestBatchesAreUrgent: of two places that other work has, a batch gets one before other work that has waited longer.
func TestBatchesAreUrgent(t *testing.T) { synctest.Test(t, testBatchesAreUrgent) }

func testBatchesAreUrgent(t *testing.T) {
	all := turns.New(2, 2)
	for range 2 {
		if !all.Try("a") {
			t.Fatal("no turn")
		}
	}
	e, err := Open(t.Context(), Spec{Source: "../testdata/demo", BatchSize: 1}, Options{Turns: all, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	stop, got := make(chan struct{}), make(chan error, 1)
	go func() { got <- all.Take(t.Context(), stop, "b") }()
	synctest.Wait()
	ctx := resources.WithTurn(t.Context(), resources.Turn{Client: "trainer"})
	p := e.Start(ctx, shuffle.StepTicket(0, 0, 1, 0, 1), false)
	synctest.Wait()
	if all.Waiting() != 2 {
		t.Errorf("%d wait for a turn, want 2", all.Waiting())
	}
	all.Leave("a")
	synctest.Wait()
	select {
	case <-p.done:
	default:
		t.Error("the batch waits behind other work")
		close(stop)
		all.Leave("a")
	}
	wait(t, p).Release()
	if err := <-got; err == nil {
		all.Leave("b")
	}
}
