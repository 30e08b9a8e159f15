package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"

	"github.com/chaski-eo/chaski/shuffle/steps"
)

// LoaderOptions say which part of a run a loader iterates over.
type LoaderOptions struct {
	// Rank of World gets every World-th row of every global batch. Default: 0 of 1.
	Rank, World int
	// State resumes a run. It must come from the same spec on the same data, unless AnyState is
	// set.
	State *steps.State
	// AnyState accepts the state of another run, such as one over less data or with other weights
	// of its mixture. The loader logs the differences and their consequences
	// (steps.State.Resume).
	AnyState bool
	// Epochs ends the run after this many epochs, counted from epoch 0. Default: it never ends.
	Epochs uint64
	// Prefetch is how many batches to prepare ahead. If the memory of an engine holds fewer beside the
	// one that the caller has, the loader prepares those, at least one, and the engine logs a
	// warning. Default Engine.Prefetch, or client.Run.Prefetch.
	Prefetch int
	// PrefetchBytes of a run at servers is as of client.TicketOptions. An engine ignores it.
	PrefetchBytes int64
	// Native has the tensors of a run at servers travel in their native dtype where that is smaller, and converts them
	// here. An engine ignores it.
	Native bool
}

// ErrClosed is the error of Loader.Next after Close, and of tickets that were unfinished when an engine was closed.
var ErrClosed = errors.New("loader: the loader or its engine is closed")

// Run is what a Loader iterates over: the steps of an engine (loader.NewLoader) or of servers (client.Run.Loader).
type Run struct {
	steps.Cut
	Samples  int64 // N, of an epoch
	BadLimit *BadLimit
	State    steps.State // at the beginning of epoch 0
	Ahead    int         // how many tickets are in work at a time
	Tickets  Tickets
	Logger   *slog.Logger
}

// Tickets works on the tickets of one Loader.
type Tickets interface {
	// Add begins a ticket.
	Add(t steps.Ticket)
	// Next returns the batch of the first ticket that was added and not returned, or its error. If ctx ends first, it
	// returns the error of ctx, and the next call goes on.
	Next(ctx context.Context) (*Batch, error)
	// Drop cancels all tickets.
	Drop()
}

// Loader iterates over the steps of a run for one rank. It is for one goroutine.
type Loader struct {
	run     Run
	options LoaderOptions
	state   steps.State
	next    cursor // the next ticket to add
	added   int    // tickets whose batches Next has not returned
	closed  bool
	bad     BadCounter
}

// cursor is a step of an epoch.
type cursor struct {
	epoch uint64
	step  int64
}

// NewLoader returns a loader that begins at o.State, or at the start of epoch 0. A rank outside of the world, an epoch
// shorter than one batch, and a state of another run are errors without a kind.
func NewLoader(run Run, o LoaderOptions) (*Loader, error) {
	o.World = cmp.Or(o.World, 1)
	if err := CheckRun(run.Cut, run.Samples, o.Rank, o.World); err != nil {
		return nil, err
	}
	rows := steps.RankRows(run.Samples, run.BatchSize, o.Rank, o.World, run.Drops())
	loader := &Loader{run: run, options: o, state: run.State,
		bad: NewBadCounter(run.BadLimit, rows, o.Rank, o.World)}
	if o.State != nil {
		var note string
		var err error
		if loader.state, note, err = o.State.Resume(run.State, run.Samples, run.BatchSize, run.Drops(),
			!o.AnyState); err != nil {
			return nil, err
		}
		if note != "" {
			run.Logger.Warn(note)
		}
	}
	loader.next = loader.position()
	return loader, nil
}

// CheckRun returns an error if a rank would get no batches of an epoch of n samples.
func CheckRun(cut steps.Cut, n int64, rank, world int) error {
	if err := steps.CheckRank(rank, world); err != nil {
		return fmt.Errorf("loader: %w", err)
	}
	if steps.Count(n, cut.BatchSize, cut.Drops()) == 0 {
		return fmt.Errorf("loader: an epoch of %d samples has no whole batch: batch_size is %d and last is \"drop\"",
			n, cut.BatchSize)
	}
	return nil
}

// Next returns the batch of the next step, or io.EOF after the last epoch. The caller holds the batch until Release.
// If ctx ends first, the work goes on and the next call returns its result. After any other error the next call tries
// the same step again. If more samples of an epoch are bad than Spec.BadLimit allows, it returns an error of kind
// limit. The errors of a run at servers name the server, and have a *fault.Error in their chain if they are about a
// file; broken connections are made again.
func (l *Loader) Next(ctx context.Context) (*Batch, error) {
	if l.closed {
		return nil, ErrClosed
	}
	next, ok := l.skip(l.position())
	if !ok {
		return nil, io.EOF
	}
	l.fill()
	batch, err := l.run.Tickets.Next(ctx)
	if err == nil {
		if err = l.bad.Note(batch); err != nil {
			batch.Release()
		}
	}
	if err != nil {
		if err != ctx.Err() { //nolint:errorlint // that one, of this wait, took no ticket
			l.drop()
			l.next = next
		}
		return nil, err
	}
	batch.Keep()
	l.added--
	l.fill()
	// The state moves only now, so a step that failed is not counted as yielded.
	l.state.Epoch = next.epoch
	l.state.Samples = min((next.step+1)*int64(l.run.BatchSize), l.run.Samples)
	l.state.Forget()
	return batch, nil
}

// position returns the step behind the state.
func (l *Loader) position() cursor {
	return cursor{l.state.Epoch, steps.Count(l.state.Samples, l.run.BatchSize, false)}
}

// skip moves a cursor past the end of an epoch to the next epoch. It reports false if there is
// none.
func (l *Loader) skip(c cursor) (cursor, bool) {
	if c.step >= steps.Count(l.run.Samples, l.run.BatchSize, l.run.Drops()) {
		c = cursor{c.epoch + 1, 0}
	}
	return c, l.options.Epochs == 0 || c.epoch < l.options.Epochs
}

// fill adds the tickets of the next steps until Run.Ahead are in work.
func (l *Loader) fill() {
	for l.added < l.run.Ahead {
		next, ok := l.skip(l.next)
		if !ok {
			return
		}
		l.next = cursor{next.epoch, next.step + 1}
		ticket := l.run.Ticket(next.epoch, next.step, l.run.Samples, l.options.Rank, l.options.World)
		ticket.Weights = l.state.WeightsAt(ticket.Epoch, ticket.First)
		l.run.Tickets.Add(ticket)
		l.added++
	}
}

// drop cancels the tickets in work.
func (l *Loader) drop() {
	l.run.Tickets.Drop()
	l.added = 0
}

// State returns the state after the batches that Next returned.
func (l *Loader) State() steps.State { return l.state }

// All iterates over the remaining batches. It releases each when the loop body ends, so a body that
// keeps one must copy it. The iteration ends after the first error. A loader has one position:
// after a break another iteration continues from it, and two iterations at a time share the
// batches.
func (l *Loader) All(ctx context.Context) iter.Seq2[*Batch, error] { return All(ctx, l.Next) }

// Close cancels the tickets in work. Batches that were returned stay valid until Release.
func (l *Loader) Close() {
	l.closed = true
	l.drop()
}
