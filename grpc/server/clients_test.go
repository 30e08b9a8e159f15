package server

import (
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/grpc/auth"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
)

// TestOneClientLeavesStreamsToOthers: 1,024 silent streams of one client leave places for others.
func TestOneClientLeavesStreamsToOthers(t *testing.T) {
	c := newClients(Options{}.withDefaults())
	open := func(id clientID) func() {
		closed, err := c.stream(id, auth.Limits{})
		if err == nil {
			return closed
		}
		if status.Code(err) != codes.ResourceExhausted {
			t.Fatal(err)
		}
		return nil
	}
	var ends []func()
	for range 1024 {
		if end := open("greedy"); end != nil {
			ends = append(ends, end)
		}
	}
	if len(ends) != 512 || c.full() {
		t.Errorf("one client has %d streams, want half of 1024, and nobody waits", len(ends))
	}
	if c.hasOthers("greedy") {
		t.Error("a client that is alone has others beside it")
	}
	for range 512 {
		end := open("modest")
		if end == nil {
			t.Fatal("another client is refused")
		}
		ends = append(ends, end)
	}
	if !c.hasOthers("greedy") {
		t.Error("a client has no others beside it")
	}
	if open("late") != nil || !c.full() {
		t.Error("there is a place, or the server does not count as full")
	}
	ends[0]()
	if c.full() {
		t.Error("there is a place, and the server counts as full")
	}
	if ends[0] = open("late"); ends[0] == nil {
		t.Error("refused where a place is free")
	}
	for _, end := range ends {
		end()
	}
	tight := auth.Limits{Streams: 1, Datasets: 1}
	end, err := c.stream("token", tight)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.stream("token", tight); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a token for one stream gets a second one: %v", err)
	}
	end()
	if len(c.byID) != 0 || c.streams != 0 {
		t.Errorf("%d clients and %d streams are left", len(c.byID), c.streams)
	}
}

// TestOneClientLeavesDatasetsToOthers: a client with tickets for as many datasets as it may have gets no more, but may
// go on with those; another one is not concerned.
func TestOneClientLeavesDatasetsToOthers(t *testing.T) {
	c := newClients(Options{MaxClientEngines: 2}.withDefaults())
	a, b, x := &datasetEntry{}, &datasetEntry{}, &datasetEntry{}
	for _, e := range []*datasetEntry{a, b, a, b} {
		if err := c.ticket("greedy", auth.Limits{}, e); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.ticket("greedy", auth.Limits{}, x); fault.KindOf(err) != fault.Limit {
		t.Errorf("a third dataset: %v", err)
	}
	if err := c.ticket("modest", auth.Limits{}, x); err != nil {
		t.Error(err)
	}
	c.answered("greedy", a)
	if c.ticket("greedy", auth.Limits{}, x) == nil {
		t.Error("a dataset with one more ticket does not count")
	}
	c.answered("greedy", a)
	if err := c.ticket("greedy", auth.Limits{}, x); err != nil {
		t.Error(err)
	}
	for _, e := range []*datasetEntry{b, b, x} {
		c.answered("greedy", e)
	}
	c.answered("modest", x)
	if len(c.byID) != 0 {
		t.Errorf("%d clients are left", len(c.byID))
	}
}

// stuck is a client that does not read until free is closed.
type stuck struct{ free chan struct{} }

func (s stuck) SendMsg(any) error { <-s.free; return nil }

// TestClientsThatDoNotRead: they are cut after seconds while others wait, and after minutes otherwise.
func TestClientsThatDoNotRead(t *testing.T) {
	for name, c := range map[string]struct {
		wanted   func(time.Duration) bool
		from, to time.Duration
	}{
		"others wait":  {func(time.Duration) bool { return true }, DefaultStallTimeout, DefaultStallTimeout},
		"nobody waits": {func(time.Duration) bool { return false }, DefaultSendTimeout, DefaultSendTimeout},
		"others come": {func(d time.Duration) bool { return d > time.Minute }, time.Minute,
			time.Minute + DefaultStallTimeout/looks},
		"others wait, and go": {func(d time.Duration) bool { return d < DefaultStallTimeout/2 }, DefaultSendTimeout,
			DefaultSendTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o, to, begin := Options{}.withDefaults(), stuck{make(chan struct{})}, time.Now()
				w := newWatch(t.Context(), to, &o, func() bool { return c.wanted(time.Since(begin)) })
				var group sync.WaitGroup
				err := w.run(&group, func() error { return w.SendMsg(nil) })
				if status.Code(err) != codes.DeadlineExceeded {
					t.Error(err)
				}
				if d := time.Since(begin); d < c.from || d > c.to {
					t.Errorf("cut after %v, want %v to %v", d, c.from, c.to)
				}
				close(to.free)
				group.Wait()
				time.Sleep(time.Hour) // no timer of it is left to close what is closed
			})
		})
	}
}

// TestClientsThatReadSlowly: a client that takes each message in time is not cut, however long the call takes.
func TestClientsThatReadSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := Options{}.withDefaults()
		w := newWatch(t.Context(), slowly{DefaultStallTimeout * 9 / 10}, &o, func() bool { return true })
		var group sync.WaitGroup
		err := w.run(&group, func() error {
			for range 100 {
				if err := w.SendMsg(nil); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

type slowly struct{ each time.Duration }

func (s slowly) SendMsg(any) error { time.Sleep(s.each); return nil }

// TestSilentStreamsMakeRoom: where all streams are taken, one that does nothing ends for one that was refused; where
// there is room it stays, unless it is idle for long and others are there.
func TestSilentStreamsMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &house{samples: 40, elems: 5}
		l, target, dial := listenBuf(t)
		s := start(t, l, Options{Open: h.Open, MaxStreams: 1})
		silent := newRaw(t, 10, target, dial...)
		synctest.Wait() // the server has begun its stream
		late := newRaw(t, 10, target, dial...)
		if _, err := late.stream.Recv(); status.Code(err) != codes.ResourceExhausted {
			t.Fatal(err)
		}
		begin := time.Now()
		if _, err := silent.stream.Recv(); !errors.Is(err, io.EOF) {
			t.Errorf("the silent stream ends with %v", err)
		}
		if d := time.Since(begin); d > DefaultStallTimeout {
			t.Errorf("it ends after %v, which is longer than %v", d, DefaultStallTimeout)
		}
		again, err := late.stub.Stream(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		late.stream = again
		late.ticket(&chaskiv1.Ticket{Id: 1, Handle: late.hash, Count: 10, RowStride: 1})
		late.credit(1)
		if _, f := late.answer(1); f != nil {
			t.Error(f)
		}
		s.stop(t)
		h.check(t)
	})
}

// TestStreamsWithoutCreditEnd: a stream whose tickets wait for a credit for long ends while another client has streams.
func TestStreamsWithoutCreditEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &house{samples: 40, elems: 5, prepare: func(e *fakeEngine) { e.Gate = make(chan struct{}) }}
		l, target, dial := listenBuf(t)
		s := start(t, l, Options{Open: h.Open, IdleTimeout: time.Minute})
		r := newRaw(t, 10, target, dial...)
		r.ticket(&chaskiv1.Ticket{Id: 1, Handle: r.hash, Count: 10, RowStride: 1})
		other := newRaw(t, 10, target, dial...)
		other.ticket(&chaskiv1.Ticket{Id: 1, Handle: r.hash, Count: 10, RowStride: 1})
		other.credit(1) // it waits for the engine
		begin := time.Now()
		if _, err := r.stream.Recv(); status.Code(err) != codes.Unavailable {
			t.Errorf("it ends with %v", err)
		}
		if d := time.Since(begin); d < time.Minute || d > 2*time.Minute {
			t.Errorf("it ends after %v, want 1 to 2 min", d)
		}
		s.stop(t)
		h.check(t)
	})
}
