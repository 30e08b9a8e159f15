package loader

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chaski-eo/chaski/internal/turns"
	"github.com/chaski-eo/chaski/loader/dryrun"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/shuffle/steps"
)

// TestEnginesShareTurns: the workers of two engines decode one at a time where there is one turn, none while somebody
// else has it, and both end.
func TestEnginesShareTurns(t *testing.T) { synctest.Test(t, testEnginesShareTurns) }

func testEnginesShareTurns(t *testing.T) {
	all := turns.New(1, 1)
	holder := all.Slot("other")
	if err := holder.Tick(t.Context()); err != nil {
		t.Fatal(err)
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
		pending = append(pending, e.Start(ctx, steps.StepTicket(0, 0, 1, 0, 1), false))
	}
	synctest.Wait()
	if n := all.Waiting(); n < 2 {
		t.Errorf("%d workers wait for their turn, want some of both engines", n)
	}
	if n, _ := stages.Decoded(); n != 0 {
		t.Errorf("%d chunks were decoded without a turn", n)
	}
	holder.Rest()
	for _, p := range pending {
		wait(t, p).Release()
	}
	if n, _ := stages.Decoded(); n == 0 {
		t.Error("nothing was decoded")
	}
}

// budgetedDemo opens the demo data with batches of one chip, and returns what starts a batch for a client.
func budgetedDemo(t *testing.T, b *resources.Budget) (*Engine, func(client string) *Pending) {
	e, err := Open(t.Context(), Spec{Source: "../testdata/demo", BatchSize: 1}, Options{Budget: b})
	if err != nil {
		t.Fatal(err)
	}
	return e, func(client string) *Pending {
		ctx := resources.WithTurn(t.Context(), resources.Turn{Client: client})
		return e.Start(ctx, steps.StepTicket(0, 0, 1, 0, 1), false)
	}
}

// TestClientsThatReleaseNothing: while others wait for the budget, clients that release none of their batches hold what
// an engine has of it. Another client of the engine gets its batches at once all the same: the budget has room for
// some, which it gives to the client that has been given least. Nothing stays charged when the client has gone.
func TestClientsThatReleaseNothing(t *testing.T) { synctest.Test(t, testClientsThatReleaseNothing) }

func testClientsThatReleaseNothing(t *testing.T) {
	b := resources.NewBudget(1 << 30)
	e, start := budgetedDemo(t, b)
	defer e.Close()
	batch := e.BatchBytes()
	opened := b.Used()
	others := othersHold(t, b, 12*batch, 40*batch)
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
	others.leave(t, still, opened, e)
}

// TestMemoryComesInTurn: clients hold more of two engines than their floors, from before others waited for the budget,
// and release nothing, and nothing is free. What comes back goes to the client that has been given least, whichever
// engine it is of, and on to the next one with its batch.
func TestMemoryComesInTurn(t *testing.T) { synctest.Test(t, testMemoryComesInTurn) }

func testMemoryComesInTurn(t *testing.T) {
	b := resources.NewBudget(1 << 30)
	one, of := budgetedDemo(t, b)
	defer one.Close()
	other, ofOther := budgetedDemo(t, b)
	defer other.Close()
	opened := b.Used()
	var still []*Pending
	for range 5 {
		still = append(still, of("a"), of("b"), ofOther("a"))
	}
	synctest.Wait()
	others := othersHold(t, b, 0, 40*one.BatchBytes())
	waits := []*Pending{of("c"), of("c"), ofOther("d"), ofOther("d")}
	synctest.Wait()
	got := func(p *Pending) bool {
		select {
		case <-p.done:
			return true
		default:
			return false
		}
	}
	for _, p := range waits {
		if got(p) {
			t.Fatal("a client has memory, and none is free")
		}
	}
	others.release(one.BatchBytes()) // for all of the batches, one after the other
	synctest.Wait()
	var order []int
	for range waits {
		for i, p := range waits {
			if got(p) && !slices.Contains(order, i) {
				order = append(order, i)
				wait(t, p).Release()
				break
			}
		}
		synctest.Wait()
	}
	if !slices.Equal(order, []int{0, 2, 1, 3}) && !slices.Equal(order, []int{2, 0, 3, 1}) {
		t.Errorf("batches come in the order %d, want the clients in turn", order)
	}
	if n := b.Limit() - b.Limit()/8 - b.Used(); n < 0 {
		t.Errorf("%d bytes are charged beyond the budget", -n)
	}
	others.leave(t, still, opened, one, other)
}

// otherUsers is what everybody else has of a budget, and a request that waits for more.
type otherUsers struct {
	budget *resources.Budget
	held   int64              // bytes
	cancel context.CancelFunc // of the request
	gone   chan error         // how the request ended
}

// othersHold leaves room bytes of a budget free, without the eighth that is for tables that grow, and waits for request
// bytes, which are more.
func othersHold(t *testing.T, b *resources.Budget, room, request int64) *otherUsers {
	o := &otherUsers{budget: b, held: b.Limit() - b.Limit()/8 - b.Used() - room, gone: make(chan error, 1)}
	if err := b.Acquire(t.Context(), o.held); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(resources.WithTurn(t.Context(), resources.Turn{Client: "big"}))
	o.cancel = cancel
	go func() { o.gone <- b.Acquire(ctx, request) }()
	synctest.Wait()
	if b.Waiting() != 1 {
		t.Fatalf("%d requests wait for the budget, want that for %d bytes", b.Waiting(), request)
	}
	return o
}

// release gives bytes back to the budget.
func (o *otherUsers) release(bytes int64) {
	o.budget.Release(bytes)
	o.held -= bytes
}

// leave ends the request and the tickets that wait, and gives everything back. The engines then hold of the budget what
// they held after they were opened.
func (o *otherUsers) leave(t *testing.T, tickets []*Pending, opened int64, engines ...*Engine) {
	o.cancel()
	if err := <-o.gone; !errors.Is(err, context.Canceled) {
		t.Errorf("the large request ends with %v", err)
	}
	for _, p := range tickets {
		p.Cancel()
	}
	synctest.Wait()
	o.release(o.held)
	for _, e := range engines {
		e.Trim()
	}
	if n := o.budget.Used(); n != opened {
		t.Errorf("%d bytes are charged at the end, %d after opening", n, opened)
	}
}

// TestBatchesAreUrgent: of two places that other work has, a batch gets one before other work that has waited longer.
func TestBatchesAreUrgent(t *testing.T) { synctest.Test(t, testBatchesAreUrgent) }

func testBatchesAreUrgent(t *testing.T) {
	all := turns.New(2, 2)
	holders := []*turns.Slot{all.Slot("a"), all.Slot("a")}
	for _, holder := range holders {
		if err := holder.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	e, err := Open(t.Context(), Spec{Source: "../testdata/demo", BatchSize: 1}, Options{Turns: all, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	waits, stop := context.WithCancel(t.Context())
	defer stop()
	other, got := all.Slot("b"), make(chan error, 1)
	go func() { got <- other.Tick(waits) }()
	synctest.Wait()
	ctx := resources.WithTurn(t.Context(), resources.Turn{Client: "trainer"})
	p := e.Start(ctx, steps.StepTicket(0, 0, 1, 0, 1), false)
	synctest.Wait()
	if all.Waiting() != 2 {
		t.Errorf("%d wait for a turn, want 2", all.Waiting())
	}
	holders[0].Rest()
	synctest.Wait()
	select {
	case <-p.done:
	default:
		t.Error("the batch waits behind other work")
		stop()
		holders[1].Rest()
	}
	wait(t, p).Release()
	if err := <-got; err == nil {
		other.Rest()
	}
}

// TestForecastsTakeTurns promises that a forecast for a client computes in the client's turns: not while others have
// them, and it ends with one turn for all of its goroutines.
func TestForecastsTakeTurns(t *testing.T) { synctest.Test(t, testForecastsTakeTurns) }

func testForecastsTakeTurns(t *testing.T) {
	e, err := Open(t.Context(), Spec{Source: "../testdata/demo", BatchSize: 1}, Options{Workers: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	all := turns.New(1, 1)
	holder, slot := all.Slot("other"), all.Slot("client")
	if err := holder.Tick(t.Context()); err != nil {
		t.Fatal(err)
	}
	var failed error
	done := false
	go func() {
		defer slot.Rest()
		var forecast *dryrun.Forecast
		if forecast, failed = e.Forecast(turns.With(t.Context(), slot), dryrun.Options{}); failed == nil {
			done = forecast.Examined == e.Steps()
		}
	}()
	synctest.Wait()
	if done || failed != nil || all.Waiting() == 0 {
		t.Fatalf("without a turn: done %v, %v, %d wait", done, failed, all.Waiting())
	}
	holder.Rest()
	synctest.Wait()
	if !done || failed != nil || all.Taken() != 0 {
		t.Errorf("with a turn: done %v, %v, %d places taken", done, failed, all.Taken())
	}
}
