package client

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/chaski-eo/chaski/grpc/payload"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/shuffle/steps"
)

// TicketOptions say how far ahead tickets are requested.
type TicketOptions struct {
	// Prefetch is the number of batches requested ahead, which is also how many are held in memory.
	// Default Run.Prefetch.
	Prefetch int
	// PrefetchBytes, with several servers and a tile-aware order (spec.TileWindow), requests more
	// batches than Prefetch, so every server has a pool of tiles to work on, while all of them
	// fit into this many bytes. Negative: none. Default DefaultPrefetchBytes.
	PrefetchBytes int64
	// Memory, if it is not nil, takes the place of Options.Memory for these batches.
	Memory payload.Memory
}

// Tickets gives the batches of tickets in the order in which they are added. A server uses it that passes the batches
// of other servers on; a Loader is simpler wherever the tickets are the steps of one rank.
type Tickets struct {
	session *session
	err     error // why the session is over
}

// DefaultPrefetchBytes is the default of TicketOptions.PrefetchBytes.
const DefaultPrefetchBytes = 2 << 30

// keptBytes is how much memory of released batches a client keeps at least: as much as engines have of small batches.
const keptBytes = 256 << 20

// maxPrefetch bounds TicketOptions.Prefetch, and the requests beyond it.
const maxPrefetch = 1024

func (o TicketOptions) withDefaults(r *Run) (TicketOptions, error) {
	o.Prefetch = cmp.Or(o.Prefetch, r.prefetch)
	o.PrefetchBytes = cmp.Or(o.PrefetchBytes, DefaultPrefetchBytes)
	if o.Prefetch < 1 || o.Prefetch > maxPrefetch {
		return o, fmt.Errorf("client: Prefetch is %d: it must be in 1..%d", o.Prefetch, maxPrefetch)
	}
	o.Memory = cmp.Or(o.Memory, r.client.options.Memory)
	if o.Memory == nil {
		b := r.RowBytes() * int64(r.shape.BatchSize)
		o.Memory = &batch.Pool{Bound: max(keptBytes, b*int64(o.Prefetch+1))}
	}
	return o, nil
}

// maxOpen returns how many tickets may be open at a time.
func (r *Run) maxOpen(prefetch int) int {
	if r.client.named() || len(r.client.servers()) > 1 {
		// Tickets beyond prefetch are open so that each server has a group of them.
		return maxPrefetch
	}
	return prefetch
}

// Tickets starts to take tickets. The error is about the options.
func (r *Run) Tickets(o TicketOptions) (*Tickets, error) {
	o, err := o.withDefaults(r)
	if err != nil {
		return nil, err
	}
	return &Tickets{session: newSession(r, o)}, nil
}

// Add requests the batch of a ticket. With native, tensors may travel in their native dtype; they are converted here
// either way. More tickets may be added than are requested ahead: the others show which groups of tickets come next,
// so every server can have one. Add and Next may be called at the same time.
func (t *Tickets) Add(ticket steps.Ticket, native bool) { t.session.add(queued{ticket, native}) }

// Next returns the batch of the next ticket. It waits until ctx is done, also for a ticket to be added. After the
// error of one ticket, the next call returns the next batch. An error that ends the connections to all servers is
// returned from then on.
func (t *Tickets) Next(ctx context.Context) (*batch.Batch, error) {
	if t.err != nil {
		return nil, t.err
	}
	called := time.Now()
	result, err := t.session.receive(ctx)
	switch {
	case err != nil:
		return nil, err
	case result.isFinal:
		t.err = result.err
	default:
		t.session.advance(result.batch, called)
	}
	return result.batch, result.err
}

// Loader returns a loader over the run. The error is about the options or the state.
func (r *Run) Loader(o batch.LoaderOptions) (*batch.Loader, error) {
	ahead, err := TicketOptions{Prefetch: o.Prefetch, PrefetchBytes: o.PrefetchBytes}.withDefaults(r)
	if err != nil {
		return nil, err
	}
	return batch.NewLoader(batch.Run{Cut: r.shape.Cut, Samples: r.samples, State: r.State(),
		Ahead: r.maxOpen(ahead.Prefetch), BadLimit: r.shape.BadLimit,
		Tickets: &steady{run: r, options: ahead, native: o.Native}, Logger: r.client.options.Logger}, o)
}

// steady has the tickets of a Loader, with memory that outlives sessions.
type steady struct {
	run     *Run
	options TicketOptions
	native  bool
	tickets *Tickets // nil until a ticket is added, and after Drop
}

// Add implements batch.Tickets.
func (s *steady) Add(t steps.Ticket) {
	if s.tickets == nil {
		s.tickets = &Tickets{session: newSession(s.run, s.options)}
	}
	s.tickets.Add(t, s.native)
}

// Next implements batch.Tickets.
func (s *steady) Next(ctx context.Context) (*batch.Batch, error) { return s.tickets.Next(ctx) }

// Drop implements batch.Tickets. It waits until no goroutine is left.
func (s *steady) Drop() {
	if s.tickets != nil {
		s.tickets.Close()
		s.tickets = nil
	}
}

// Close cancels the requests, and waits until no goroutine is left. Batches that were returned stay valid until
// Release.
func (t *Tickets) Close() { t.session.close() }
