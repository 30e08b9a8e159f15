package server

import (
	"cmp"
	"context"
	"maps"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/grpc/auth"
)

const (
	// longestDebt bounds the delay that one message adds, so the sum of many does not overflow.
	longestDebt = 24 * time.Hour
	// manyClients is how many clients may be known before those that have nothing, and whose debts are over, are
	// forgotten.
	manyClients = 1024
	// maxClientCalls bounds the calls of one client at a time: the streams and descriptions of a job of 1,024 ranks.
	// Each takes some 16 KiB, and callWindow at most.
	maxClientCalls = 2048
	// maxRequests bounds the requests of one client that are read and worked on, besides streams: with maxRequest bytes
	// each, 64 MiB. Further ones wait, and are not read.
	maxRequests = 32
	// maxHealthCalls bounds those for health of one host, which need no token. Probes make one a second.
	maxHealthCalls = 8
)

// clients bounds what each client has of a server, so no one shuts the others out.
type clients struct {
	options Options

	mu      sync.Mutex
	byID    map[clientID]*holdings
	streams int
}

// holdings counts what one client has.
type holdings struct {
	streams  int
	datasets map[*datasetEntry]int // tickets that are not answered
	openings int                   // that it has begun, with and without a place
	calls    int
	requests *places   // of calls other than streams that are worked on
	free     time.Time // when its next answer may begin: see spent
}

func newClients(o Options) *clients { return &clients{options: o, byID: map[clientID]*holdings{}} }

func (h *holdings) empty() bool {
	return h.streams == 0 && len(h.datasets) == 0 && h.openings == 0 && h.calls == 0 && !h.free.After(time.Now())
}

// change calls f, with the lock, with what a client has. A client that has nothing then is forgotten.
func (c *clients) change(id clientID, f func(held *holdings)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	held := c.byID[id]
	if held == nil {
		if len(c.byID) >= manyClients {
			maps.DeleteFunc(c.byID, func(_ clientID, other *holdings) bool { return other.empty() })
		}
		held = &holdings{datasets: map[*datasetEntry]int{}, requests: newPlaces(maxRequests)}
		c.byID[id] = held
	}
	f(held)
	if held.empty() {
		delete(c.byID, id)
	}
}

// call counts a call of a client until its context ends, or returns the status of one that is too many. requests are
// the places for the requests of the client.
func (c *clients) call(ctx context.Context, id clientID, most int) (requests *places, err error) {
	c.change(id, func(h *holdings) {
		if h.calls >= most {
			err = status.Errorf(codes.ResourceExhausted, "%s has %d calls, no more are taken", id, h.calls)
			return
		}
		h.calls++
		requests = h.requests
	})
	if err == nil {
		context.AfterFunc(ctx, func() { c.change(id, func(h *holdings) { h.calls-- }) })
	}
	return requests, err
}

// stream counts a stream of a client until closed is called, or returns the status of one that is too many. Limits that
// are 0 come from the options.
func (c *clients) stream(id clientID, most auth.Limits) (closed func(), err error) {
	c.change(id, func(h *holdings) {
		switch {
		case h.streams >= cmp.Or(most.Streams, c.options.MaxClientStreams):
			err = status.Errorf(codes.ResourceExhausted, "%s has %d streams, no more are taken "+
				"(--max-client-streams)", id, h.streams)
		case c.streams >= c.options.MaxStreams:
			err = status.Errorf(codes.ResourceExhausted, "%d streams are being served, no more are taken "+
				"(--max-streams)", c.streams)
		default:
			h.streams++
			c.streams++
		}
	})
	return func() {
		c.change(id, func(h *holdings) {
			h.streams--
			c.streams--
		})
	}, err
}

// serving returns how many streams are served.
func (c *clients) serving() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.streams
}

// full reports whether there is no place for another stream.
func (c *clients) full() bool { return c.serving() >= c.options.MaxStreams }

// hasOthers reports whether other clients than id have streams.
func (c *clients) hasOthers(id clientID) (ok bool) {
	c.change(id, func(h *holdings) { ok = c.streams > h.streams })
	return ok
}

// ticket counts a ticket of a client for a dataset, or returns an error if it is for one dataset too many.
func (c *clients) ticket(id clientID, most auth.Limits, e *datasetEntry) (err error) {
	c.change(id, func(h *holdings) {
		datasets := len(h.datasets)
		if datasets >= cmp.Or(most.Datasets, c.options.MaxClientEngines) && h.datasets[e] == 0 {
			err = fault.New(fault.Limit, "server", "%s has unanswered tickets for %d datasets, "+
				"the most for one client (--max-client-datasets)", id, datasets)
			return
		}
		h.datasets[e]++
	})
	return err
}

// answered is the end of a ticket that was counted.
func (c *clients) answered(id clientID, e *datasetEntry) {
	c.change(id, func(h *holdings) {
		if h.datasets[e]--; h.datasets[e] == 0 {
			delete(h.datasets, e)
		}
	})
}

// opening counts an opening of a client until opened is called, or returns an error if it is one too many.
func (c *clients) opening(id clientID) (err error) {
	c.change(id, func(h *holdings) {
		if h.openings >= c.options.MaxClientOpenings {
			err = fault.New(fault.Limit, "server", "%s is already opening %d datasets and files, the most for one "+
				"client (--max-client-openings)", id, h.openings)
			return
		}
		h.openings++
	})
	return err
}

// opened is the end of an opening that was counted.
func (c *clients) opened(id clientID) { c.change(id, func(h *holdings) { h.openings-- }) }

// wait waits until an answer to a client may begin, or returns the cause if ctx ends before. An answer that has begun
// does not wait, because it holds memory and a place that others may wait for.
func (c *clients) wait(ctx context.Context, id clientID) error {
	for {
		delay := c.delay(id)
		if delay <= 0 {
			return nil
		}
		timer := time.NewTimer(delay)
		select {
		case <-timer.C: // another answer may have been sent meanwhile
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

// delay returns for how long the next answer to a client has to wait.
func (c *clients) delay(id clientID) (d time.Duration) {
	c.change(id, func(h *holdings) { d = max(time.Until(h.free), 0) })
	return d
}

// spent counts n bytes that a client was sent, which delay its next answer. most is the rate of its token, 0 if it has
// none.
func (c *clients) spent(id clientID, most int64, n int) {
	rate := cmp.Or(most, c.options.ClientRate)
	if rate == 0 || n == 0 {
		return
	}
	debt := time.Duration(min(float64(n)/float64(rate)*float64(time.Second), float64(longestDebt)))
	c.change(id, func(h *holdings) {
		if now := time.Now(); h.free.Before(now) {
			h.free = now
		}
		h.free = h.free.Add(debt)
	})
}
