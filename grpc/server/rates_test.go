package server

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
)

// TestClientsAreSentNoMoreThanTheirRate: over a while, a client is sent its rate, whatever the number and the size of
// its answers; its token's rate comes before that of all; others do not wait; nothing of clients that left stays.
func TestClientsAreSentNoMoreThanTheirRate(t *testing.T) {
	for name, c := range map[string]struct{ each, token, want int64 }{
		"all": {1000, 0, 1000}, "token": {1000, 50, 50}, "token alone": {0, 50, 50},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, begin, sent := newClients(Options{ClientRate: c.each}), time.Now(), int64(0)
				for i := range 40 {
					if err := r.wait(t.Context(), "a"); err != nil {
						t.Fatal(err)
					}
					if d := time.Since(begin); sent > 0 && d != time.Duration(sent)*time.Second/time.Duration(c.want) {
						t.Errorf("%d bytes after %v", sent, d)
					}
					n := 37 * (i%3 + 1)
					r.spent("a", c.token, n)
					sent += int64(n)
					if err := r.wait(t.Context(), "b"); err != nil || r.delay("b") != 0 {
						t.Error("another client waits")
					}
				}
				time.Sleep(time.Hour)
				if r.delay("a") > 0 || len(r.byID) != 0 {
					t.Errorf("%d clients are left", len(r.byID))
				}
			})
		})
	}
}

// TestRateEnds: a client that waits for its rate goes with its call and with the server. Without a rate nobody waits.
func TestRateEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newClients(Options{ClientRate: 1})
		r.spent("a", 0, 1<<62)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.wait(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		stopped, stop := context.WithCancelCause(t.Context())
		stop(errStopping)
		if err := r.wait(stopped, "a"); !errors.Is(err, errStopping) {
			t.Error(err)
		}
		r = newClients(Options{})
		if r.spent("a", 0, 1<<62); len(r.byID) != 0 {
			t.Error("a client without a rate waits")
		}
	})
}

// TestDebtsThatAreOverAreForgotten: clients that come once and go do not fill the memory.
func TestDebtsThatAreOverAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newClients(Options{ClientRate: 1000})
		for i := range 5 * manyClients {
			r.spent(clientID(string(rune(i))), 0, 1)
			time.Sleep(time.Millisecond)
		}
		if n := len(r.byID); n > manyClients {
			t.Errorf("%d clients are known", n)
		}
	})
}

// TestAnswersCount: what reads and batches send is counted, and the next answer of the client waits for it.
func TestAnswersCount(t *testing.T) {
	name := sparseTIFF(t, 1024)
	connected(t, Options{Roots: []string{"/"}, ClientRate: 1}, func(c chaskiv1.ChaskiClient) {
		read := &chaskiv1.ReadRequest{Paths: []string{name}}
		if _, err := readBytes(t, c, read); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		again, err := c.Read(ctx, read)
		if err == nil {
			_, err = again.Recv()
		}
		if status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("a second answer of a client with one byte a second: %v", err)
		}
	})
	h := &house{samples: 40, elems: 5}
	l, target, dial := listenBuf(t)
	s := start(t, l, Options{Open: h.Open, ClientRate: 1})
	r := newRaw(t, 10, target, dial...)
	for id := range uint64(2) {
		r.ticket(&chaskiv1.Ticket{Id: id + 1, Handle: r.hash, Count: 10, RowStride: 1})
	}
	r.credit(2)
	if _, f := r.answer(1); f != nil {
		t.Fatal(f)
	}
	eventually(t, "the batch is not counted", func() bool {
		clients := s.server.clients
		clients.mu.Lock()
		defer clients.mu.Unlock()
		for _, h := range clients.byID {
			return h.free.After(time.Now())
		}
		return false
	})
	s.stop(t) // the second one waits, and ends with the server
	h.check(t)
}
