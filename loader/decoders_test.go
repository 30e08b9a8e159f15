package loader

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/shuffle/steps"
)

// TestEnginesShareDecoders: the workers of two engines of a client wait for its one decoder, and those of another
// client do not.
func TestEnginesShareDecoders(t *testing.T) { synctest.Test(t, testEnginesShareDecoders) }

func testEnginesShareDecoders(t *testing.T) {
	all := resources.NewDecoders(1)
	start := func(client string) *Pending {
		e, err := Open(t.Context(), Spec{Source: "../testdata/demo", BatchSize: 1}, Options{Decoders: all, Workers: 2})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.Close() })
		ctx := resources.WithCaller(t.Context(), resources.Caller{Client: client})
		return e.Start(ctx, steps.StepTicket(0, 0, 1, 0, 1), false)
	}
	all.Begin("greedy")
	greedy := []*Pending{start("greedy"), start("greedy")}
	wait(t, start("modest")).Release()
	synctest.Wait()
	for _, p := range greedy {
		select {
		case <-p.done:
			t.Error("a batch was decoded without a decoder")
		default:
		}
	}
	all.End("greedy")
	for _, p := range greedy {
		wait(t, p).Release()
	}
	synctest.Wait() // a worker hands a batch over before it ends its decoding
	if all.AllBusy() {
		t.Error("a decoder is busy after all batches")
	}
}

// TestMemoryForALargeRequest: clients release none of their batches, and a request for more memory than is free waits.
// Whoever comes later gets its batches once the request is over, and at the end nothing stays charged.
func TestMemoryForALargeRequest(t *testing.T) { synctest.Test(t, testMemoryForALargeRequest) }

func testMemoryForALargeRequest(t *testing.T) {
	b := resources.NewBudget(1 << 30)
	e, err := Open(t.Context(), Spec{Source: "../testdata/demo", BatchSize: 1}, Options{Budget: b})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	start := func(client string) *Pending {
		ctx := resources.WithCaller(t.Context(), resources.Caller{Client: client})
		return e.Start(ctx, steps.StepTicket(0, 0, 1, 0, 1), false)
	}
	batch, opened := e.BatchBytes(), b.Used()
	held := b.Limit() - b.Limit()/8 - opened - 12*batch
	if err := b.Acquire(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() { gone <- b.Acquire(ctx, 40*batch) }()
	synctest.Wait()
	var still []*Pending
	for range 5 {
		still = append(still, start("a"), start("b"))
	}
	synctest.Wait()
	late := start("c")
	synctest.Wait()
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("the large request ends with %v", err)
	}
	wait(t, late).Release()
	for _, p := range still {
		p.Cancel()
	}
	synctest.Wait()
	b.Release(held)
	e.Trim()
	if n := b.Used(); n != opened {
		t.Errorf("%d bytes are charged at the end, %d after opening", n, opened)
	}
}
