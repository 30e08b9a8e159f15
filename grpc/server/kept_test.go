package server

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/resources"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
)

// TestDatasetsOfPausedStreamsAreClosed: the dataset of a stream whose client pauses is closed for a request that needs
// memory, and so is that of a stream that has ended.
func TestDatasetsOfPausedStreamsAreClosed(t *testing.T) {
	for name, ended := range map[string]bool{"paused": false, "ended": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testDatasetIsClosed(t, ended) })
		})
	}
}

func testDatasetIsClosed(t *testing.T, ended bool) {
	t.Helper()
	total := resources.NewBudget(800)
	if !total.TryAcquire(700) {
		t.Fatal("no room")
	}
	defer total.Release(700)
	h := &house{samples: 100, elems: 10}
	l, target, dial := listenBuf(t)
	server := start(t, l, Options{Open: h.Open, Loader: loader.Options{Budget: total}})
	r := newRaw(t, 4, target, dial...)
	r.batch(0)
	if ended {
		if err := r.stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(keptFor)
	synctest.Wait()
	a, err := total.Open(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // for holders to give memory
	defer cancel()
	if err := a.Grow(ctx, 200); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	a.Close()
	if !h.open[0].Closed.Load() {
		t.Error("it is open")
	}
	server.stop(t)
	h.check(t)
}

// pressed starts a server in whose budget a request waits for memory, for as long as test runs.
func pressed(t *testing.T, test func(t *testing.T, h *house, newClient func() *raw)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		total := resources.NewBudget(800)
		if !total.TryAcquire(600) {
			t.Fatal("no room")
		}
		h := &house{samples: 400, elems: 10}
		l, target, dial := listenBuf(t)
		server := start(t, l, Options{Open: h.Open, Loader: loader.Options{Budget: total}})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			for ctx.Err() == nil { // a wait ends after a minute
				if a, err := total.Open(ctx, 500); err == nil {
					a.Close()
					t.Error("there was room")
				}
			}
			ended <- ctx.Err()
		}()
		synctest.Wait()
		if total.Waiting() != 1 {
			t.Fatal("no request waits")
		}
		test(t, h, func() *raw { return newRaw(t, 4, target, dial...) })
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		total.Release(600)
		server.stop(t)
		h.check(t)
	})
}

// batch asks for a batch. It fails the test if the dataset was closed.
func (r *raw) batch(id uint64) {
	r.t.Helper()
	r.ticket(&chaskiv1.Ticket{Id: id, Handle: r.hash, First: 4 * int64(id), Count: 4, RowStride: 1})
	r.credit(1)
	b, f := r.answer(id)
	if f != nil {
		r.t.Fatalf("ticket %d: %v", id, f)
	}
	b.Release()
}

// TestDatasetsStayForTheirFirstTicket: while others wait for memory, a dataset that a client has described is there
// for its first ticket. If none comes, it is closed.
func TestDatasetsStayForTheirFirstTicket(t *testing.T) {
	pressed(t, func(t *testing.T, h *house, newClient func() *raw) {
		r := newClient()
		synctest.Wait() // until whoever waits has asked for what can be closed
		r.batch(0)
		if err := r.stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !h.open[0].Closed.Load() {
			t.Error("it is open though its stream has ended")
		}
		newClient()
		time.Sleep(keptFor - 1)
		synctest.Wait()
		if h.open[1].Closed.Load() {
			t.Error("closed too soon")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if !h.open[1].Closed.Load() {
			t.Error("it is open though no ticket has come")
		}
	})
}

// TestDatasetsOfStreamsStay: while others wait for memory, the dataset of a stream is not closed between two tickets.
// Once the client pauses for longer, it is.
func TestDatasetsOfStreamsStay(t *testing.T) {
	pressed(t, func(t *testing.T, h *house, newClient func() *raw) {
		r := newClient()
		for i := range uint64(40) { // for longer than a request waits
			r.batch(i)
			time.Sleep(keptFor / 2)
			synctest.Wait()
		}
		if len(h.open) != 1 || h.open[0].Closed.Load() {
			t.Fatal("it was closed")
		}
		time.Sleep(keptFor / 2)
		synctest.Wait()
		if !h.open[0].Closed.Load() {
			t.Error("it is open though its client pauses")
		}
	})
}

// TestOneClientHoldsOneDataset: a client that describes one dataset after the other holds the last one only.
func TestOneClientHoldsOneDataset(t *testing.T) {
	pressed(t, func(t *testing.T, h *house, newClient func() *raw) {
		r := newClient()
		for range 3 {
			b, err := json.Marshal(loader.Spec{Source: "y", BatchSize: 4, Seed: uint64(len(h.open))})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.stub.Describe(t.Context(), &chaskiv1.DescribeRequest{Spec: b}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // until whoever waits has asked for what can be closed
			for i, e := range h.open {
				if last := i == len(h.open)-1; e.Closed.Load() == last {
					t.Errorf("of %d datasets, number %d is closed: %v", len(h.open), i, !last)
				}
			}
		}
	})
}

// TestUnreadBatchesComeBack: while others wait for memory, a client that does not read a batch which the transport has
// taken, and sends no further ticket, loses its stream and its connection, and so the batch comes back.
func TestUnreadBatchesComeBack(t *testing.T) {
	pressed(t, func(t *testing.T, h *house, newClient func() *raw) {
		h.elems = 50_000 // a batch of 800 kB fits into one message, and not into what a client takes unasked
		r := newClient()
		r.ticket(&chaskiv1.Ticket{Id: 0, Handle: r.hash, Count: 4, RowStride: 1})
		r.credit(1)
		time.Sleep(2 * DefaultStallTimeout)
		synctest.Wait()
		if n := h.open[0].Live.Load(); n != 0 {
			t.Errorf("%d batches are out", n)
		}
	})
}
