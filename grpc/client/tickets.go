package client

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/chaski-eo/chaski/grpc/payload"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/shuffle"
)

// TicketOptions say how far ahead tickets are requested. Both fields mean the same as in LoaderOptions.
type TicketOptions struct {
	Prefetch      int
	PrefetchBytes int64
	// Memory, if it is not nil, takes the place of Options.Memory for these batches.
	Memory payload.Memory
}

// Tickets gives the batches of tickets in the order in which they are added. A server uses it that passes the batches
// of other servers on; a Loader is simpler wherever the tickets are the steps of one rank.
type Tickets struct {
	session *session
	demand  *demand
	rows    int64 // bytes of a row
	err     error // why the session is over

	mu    sync.Mutex
	queue []queued
}

// queued is a ticket that the session did not take yet.
type queued struct {
	ticket shuffle.Ticket
	native bool
}

// Tickets starts to take tickets. The error is about the options.
func (r *Run) Tickets(o TicketOptions) (*Tickets, error) {
	o.Prefetch = cmp.Or(o.Prefetch, loader.DefaultPrefetch)
	o.PrefetchBytes = cmp.Or(o.PrefetchBytes, DefaultPrefetchBytes)
	if o.Prefetch < 1 || o.Prefetch > maxPrefetch {
		return nil, fmt.Errorf("client: prefetch is %d: it must be from 1 to %d", o.Prefetch, maxPrefetch)
	}
	tickets := &Tickets{rows: r.RowBytes()}
	tickets.demand = newDemand(r, o.Prefetch, o.PrefetchBytes, tickets.next)
	tickets.demand.memory = o.Memory
	tickets.session = newSession(r, tickets.demand)
	return tickets, nil
}

// next is demand.next.
func (t *Tickets) next() (ticket shuffle.Ticket, native, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.queue) == 0 {
		return ticket, false, false
	}
	queued := t.queue[0]
	t.queue = t.queue[1:]
	t.demand.bytes = max(t.demand.bytes, t.rows*int64(queued.ticket.Rows()))
	return queued.ticket, queued.native, true
}

// Add requests the batch of a ticket. With native, tensors may travel in their native dtype; they are converted here
// either way. More tickets may be added than are requested ahead: the others show which groups of tickets come next,
// so that every server can have one. Add and Next may be called at the same time.
func (t *Tickets) Add(ticket shuffle.Ticket, native bool) {
	t.mu.Lock()
	t.queue = append(t.queue, queued{ticket, native})
	t.mu.Unlock()
	t.session.ask()
}

// Next returns the batch of the next ticket. It waits until ctx is done, also for a ticket to be added. After the
// error of one ticket, the next call returns the next batch. An error that ends the connections to all servers is
// returned from then on.
func (t *Tickets) Next(ctx context.Context) (*loader.Batch, error) {
	if t.err != nil {
		return nil, t.err
	}
	t.session.want()
	select {
	case result := <-t.session.out:
		if result.over {
			t.err = result.err
		} else {
			t.session.taken(result.batch)
		}
		return result.batch, result.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Close cancels the requests, and waits until no goroutine is left. Batches that were returned stay valid until
// Release.
func (t *Tickets) Close() { t.session.close() }
