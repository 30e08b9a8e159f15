package loader

import (
	"cmp"
	"context"
	"fmt"

	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/shuffle/steps"
)

type (
	// Loader iterates over the steps of a run for one rank.
	Loader = batch.Loader
	// LoaderOptions say which part of a run a loader iterates over.
	LoaderOptions = batch.LoaderOptions
)

// NewLoader returns a loader that begins at o.State, or at the start of epoch 0. The engine
// outlives it. A rank outside of the world, an epoch shorter than one batch, and a state of another
// run are errors without a kind.
func NewLoader(e *Engine, o LoaderOptions) (*Loader, error) {
	o.World = cmp.Or(o.World, 1)
	o.Prefetch = cmp.Or(o.Prefetch, e.Prefetch(o.World))
	if err := e.checkRun(o.Rank, o.World, o.Prefetch); err != nil {
		return nil, err
	}
	fit, err := e.BatchesFit(steps.LocalRows(e.spec.BatchSize, o.World))
	if err != nil {
		return nil, err
	}
	// One batch of the memory belongs to the caller until Release, so one less can be prepared.
	if ahead := max(fit-1, 1); int64(o.Prefetch) > ahead {
		e.options.Logger.Warn(
			"the memory holds fewer batches than are to be prefetched: raise it, or batches are waited for",
			"memory bytes", e.options.MemoryBytes, "batches", fit, "prefetch", o.Prefetch, "prefetched", ahead)
		o.Prefetch = int(ahead)
	}
	tickets := &startedTickets{engine: e}
	tickets.ctx = resources.WithCaller(context.Background(), resources.Caller{Stream: tickets})
	return batch.NewLoader(batch.Run{Cut: e.spec.Cut(), Samples: e.samples, State: e.State(), Ahead: o.Prefetch,
		BadLimit: (*batch.BadLimit)(e.spec.BadLimit), Tickets: tickets, Logger: e.options.Logger}, o)
}

// startedTickets has the tickets of a Loader that are in work, in the order of steps: a stream of its own.
type startedTickets struct {
	engine *Engine
	ctx    context.Context
	ahead  []*Pending
}

// Add implements batch.Tickets.
func (s *startedTickets) Add(t steps.Ticket) {
	s.ahead = append(s.ahead, s.engine.Start(s.ctx, t, false))
}

// Next implements batch.Tickets.
func (s *startedTickets) Next(ctx context.Context) (*batch.Batch, error) {
	first := s.ahead[0]
	select {
	case <-first.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.ahead = append(s.ahead[:0], s.ahead[1:]...)
	return first.batch, first.err
}

// Drop implements batch.Tickets.
func (s *startedTickets) Drop() {
	for _, p := range s.ahead {
		p.Cancel()
	}
	s.ahead = s.ahead[:0]
}

// aheadBytes bounds the batches of Engine.Prefetch, which also lie in memory of the client: 256 MiB are two seconds of
// a link of 1 Gbit/s.
const aheadBytes = 256 << 20

// Prefetch returns how many batches a loader of one rank of world prepares ahead by default: batch.DefaultPrefetch. Of
// remote files they are as many as a quarter of the memory and aheadBytes hold, at most batch.MaxAutoPrefetch: only
// many requests fill a link with small samples, and a batch waits for its slowest one.
func (e *Engine) Prefetch(world int) int {
	if !e.remote() {
		return batch.DefaultPrefetch
	}
	return e.remotePrefetch(world)
}

// remotePrefetch is Prefetch of remote files.
func (e *Engine) remotePrefetch(world int) int {
	largest, err := e.bytesOf(steps.LocalRows(e.spec.BatchSize, max(world, 1)), false)
	if err != nil {
		return batch.DefaultPrefetch
	}
	room := min(e.options.MemoryBytes/4, aheadBytes)
	return int(min(max(room/max(largest, 1), batch.DefaultPrefetch), batch.MaxAutoPrefetch))
}

// checkRun returns an error if prefetch is below 1, or if a rank would get no batches.
func (e *Engine) checkRun(rank, world, prefetch int) error {
	if prefetch < 1 {
		return fmt.Errorf("loader: Prefetch is %d: it must be at least 1", prefetch)
	}
	return batch.CheckRun(e.spec.Cut(), e.samples, rank, world)
}
