package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/shuffle/steps"
)

// LoaderOptions say which part of a run a loader iterates over.
type LoaderOptions struct {
	// Rank of World gets every World-th row of every global batch. Default: 0 of 1.
	Rank, World int
	// State continues a run; it must be of the same spec on the same data, unless AnyState is set.
	State *steps.State
	// AnyState takes the state of another run, as loader.LoaderOptions.AnyState does. The client logs
	// the differences and their consequences.
	AnyState bool
	// Epochs ends the run after so many epochs, counted from epoch 0. Default: it goes on for ever.
	Epochs uint64
	// Prefetch and PrefetchBytes are as of TicketOptions.
	Prefetch      int
	PrefetchBytes int64
	// Native has tensors travel in their native dtype where that is smaller, and converts them here.
	Native bool
}

// ErrClosed is the error of Next after Close.
var ErrClosed = errors.New("client: the loader is closed")

// Loader iterates over the steps of a run for one rank. It is for one goroutine.
type Loader struct {
	run     *Run
	options LoaderOptions
	ahead   TicketOptions // with memory that outlives sessions
	state   steps.State
	tickets *Tickets // nil after an error
	added   int      // tickets whose batches Next has not returned
	next    cursor   // the step whose ticket is added next
	closed  bool
	bad     batch.BadCounter
}

// cursor is a step of an epoch.
type cursor struct {
	epoch uint64
	step  int64
}

// Loader starts iterating. The error is about the options or the state.
func (r *Run) Loader(o LoaderOptions) (*Loader, error) {
	o.World = cmp.Or(o.World, 1)
	ahead, err := TicketOptions{Prefetch: o.Prefetch, PrefetchBytes: o.PrefetchBytes}.withDefaults(r)
	if err != nil {
		return nil, err
	}
	if err := steps.CheckRank(o.Rank, o.World); err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	if r.Steps() == 0 {
		return nil, fmt.Errorf("client: an epoch of %d samples has no whole batch: batch_size is %d and "+
			"last is \"drop\"", r.samples, r.shape.BatchSize)
	}
	rows := steps.RankRows(r.samples, r.shape.BatchSize, o.Rank, o.World, r.shape.Drops())
	made := &Loader{run: r, options: o, ahead: ahead, state: r.State(),
		bad: batch.NewBadCounter(r.shape.BadLimit, rows, o.Rank, o.World)}
	if o.State != nil {
		var note string
		var err error
		if made.state, note, err = o.State.Resume(made.state, r.samples, r.shape.BatchSize, r.shape.Drops(),
			!o.AnyState); err != nil {
			return nil, err
		}
		if note != "" {
			r.client.options.Logger.Warn(note)
		}
	}
	return made, nil
}

// Next returns the batch of the next step, or io.EOF after the last epoch. The batch is the
// caller's until Release. While ctx is not done, Next waits; broken connections are made again.
// The error names the server, and has a *fault.Error in its chain if it is about a file; after an
// error, the same step is tried again.
func (l *Loader) Next(ctx context.Context) (*batch.Batch, error) {
	if l.closed {
		return nil, ErrClosed
	}
	next, ok := l.skip(cursor{l.state.Epoch, steps.Count(l.state.Samples, l.run.shape.BatchSize, false)})
	if !ok {
		return nil, io.EOF
	}
	if l.tickets == nil {
		l.tickets, l.added, l.next = &Tickets{session: newSession(l.run, l.ahead)}, 0, next
	}
	l.add()
	batch, err := l.tickets.Next(ctx)
	if err == nil {
		if err = l.bad.Note(batch); err != nil {
			batch.Release()
		}
	}
	if err != nil {
		if err != ctx.Err() { //nolint:errorlint // that one, of this wait, took no ticket
			l.drop()
		}
		return nil, err
	}
	l.added--
	l.add()
	l.state.Epoch = next.epoch
	l.state.Samples = min((next.step+1)*int64(l.run.shape.BatchSize), l.run.samples)
	return batch, nil
}

// add adds the tickets of the next steps, as many as may be open.
func (l *Loader) add() {
	for l.added < l.run.maxOpen(l.ahead.Prefetch) {
		next, ok := l.skip(l.next)
		if !ok {
			return
		}
		l.next = cursor{next.epoch, next.step + 1}
		ticket := l.run.shape.Ticket(next.epoch, next.step, l.run.samples, l.options.Rank, l.options.World)
		l.tickets.Add(ticket, l.options.Native)
		l.added++
	}
}

// skip moves a cursor past the end of an epoch to the next one, and reports whether there is one.
func (l *Loader) skip(c cursor) (cursor, bool) {
	if c.step >= l.run.Steps() {
		c = cursor{c.epoch + 1, 0}
	}
	return c, l.options.Epochs == 0 || c.epoch < l.options.Epochs
}

// drop cancels the requests.
func (l *Loader) drop() {
	if l.tickets != nil {
		l.tickets.Close()
		l.tickets = nil
	}
}

// State returns the state after the batches that Next returned.
func (l *Loader) State() steps.State { return l.state }

// All iterates over the remaining batches. Each is released when the loop body ends; a body that
// keeps one must copy it. The iteration ends after the first error.
func (l *Loader) All(ctx context.Context) iter.Seq2[*batch.Batch, error] {
	return batch.All(ctx, l.Next)
}

// Close cancels the requests, and waits until no goroutine is left. Batches that were returned stay
// valid until Release.
func (l *Loader) Close() {
	l.closed = true
	l.drop()
}
