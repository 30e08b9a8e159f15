package server

import (
	"cmp"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/grpc/auth"
)

// clients bounds what each client has of a server, so that no one shuts the others out.
type clients struct {
	options Options

	mu      sync.Mutex
	byID    map[clientID]*holdings
	streams int
	wanted  int // streams that were refused for lack of a place, less the idle ones that ended to make room
}

// holdings counts the resources of one client.
type holdings struct {
	streams  int
	datasets map[*entry]int // tickets that are not answered
}

func newClients(o Options) *clients { return &clients{options: o, byID: map[clientID]*holdings{}} }

// of needs the lock.
func (c *clients) of(id clientID) *holdings {
	h := c.byID[id]
	if h == nil {
		h = &holdings{datasets: map[*entry]int{}}
		c.byID[id] = h
	}
	return h
}

// end forgets a client that has nothing. It needs the lock.
func (c *clients) end(id clientID, h *holdings) {
	if h.streams == 0 && len(h.datasets) == 0 {
		delete(c.byID, id)
	}
}

// stream counts a stream of a client until closed is called, or returns the status of one that is too many. Limits that
// are 0 come from the options.
func (c *clients) stream(id clientID, most auth.Limits) (closed func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	holdings := c.of(id)
	defer c.end(id, holdings)
	if holdings.streams >= cmp.Or(most.Streams, c.options.MaxClientStreams) {
		return nil, status.Errorf(codes.ResourceExhausted, "%s has %d streams, no more are taken "+
			"(--max-client-streams)", id, holdings.streams)
	}
	if c.streams >= c.options.MaxStreams {
		// No more than there are: otherwise streams would end long after those that were refused have given up.
		c.wanted = min(c.wanted+1, c.streams)
		return nil, status.Errorf(codes.ResourceExhausted, "%d streams are being served, no more are taken "+
			"(--max-streams)", c.streams)
	}
	holdings.streams++
	c.streams++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		holdings.streams--
		c.streams--
		c.end(id, holdings)
	}, nil
}

// serving returns how many streams are served.
func (c *clients) serving() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.streams
}

// yield reports whether an idle stream must end to make room, since another one was refused.
func (c *clients) yield() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streams < c.options.MaxStreams {
		c.wanted = 0 // there are places
	}
	if c.wanted == 0 {
		return false
	}
	c.wanted--
	return true
}

// others reports whether other clients than id have streams.
func (c *clients) others(id clientID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.byID[id]
	return h == nil || c.streams > h.streams
}

// full reports whether streams were refused because there are too many.
func (c *clients) full() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wanted > 0 && c.streams >= c.options.MaxStreams
}

// ticket counts a ticket of a client for a dataset, or returns an error if it is for one dataset too many.
func (c *clients) ticket(id clientID, most auth.Limits, e *entry) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	holdings := c.of(id)
	defer c.end(id, holdings)
	if n := len(holdings.datasets); n >= cmp.Or(most.Datasets, c.options.MaxClientEngines) &&
		holdings.datasets[e] == 0 {
		return fault.New(fault.Limit, "server", fault.NoOffset, "%s has unanswered tickets for %d datasets, "+
			"the most for one client (--max-client-datasets)", id, n)
	}
	holdings.datasets[e]++
	return nil
}

// answered is the end of a ticket that was counted.
func (c *clients) answered(id clientID, e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	holdings := c.byID[id]
	if holdings.datasets[e]--; holdings.datasets[e] == 0 {
		delete(holdings.datasets, e)
	}
	c.end(id, holdings)
}
