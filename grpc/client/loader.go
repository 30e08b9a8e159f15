package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/shuffle"
)

// LoaderOptions say which part of a run a loader iterates over.
type LoaderOptions struct {
	// Rank of World gets every World-th row of every global batch. Default: 0 of 1.
	Rank, World int
	// State continues a run; it must be of the same spec on the same data, unless AnyState is set.
	State *shuffle.State
	// AnyState takes the state of another run, as loader.LoaderOptions.AnyState does. The client logs
	// the differences and their consequences.
	AnyState bool
	// Epochs ends the run after so many epochs, counted from epoch 0. Default: it goes on for ever.
	Epochs uint64
	// Prefetch is the number of batches requested ahead, which is also how many are held in memory.
	// Default loader.DefaultPrefetch.
	Prefetch int
	// PrefetchBytes, with several servers and a tile-aware order (spec.TileWindow), requests more
	// batches than Prefetch, so that every server has a pool of tiles to work on, while all of them
	// fit into this many bytes. Negative: none. Default DefaultPrefetchBytes.
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
	state   shuffle.State
	session *session
	demand  *demand
	next    cursor // the step that the session asks for next; guarded by the session's lock
	closed  bool
	bad     loader.BadCounter
}

// cursor is a step of an epoch.
type cursor struct {
	epoch uint64
	step  int64
}

// Loader starts iterating. The error is about the options or the state.
func (r *Run) Loader(o LoaderOptions) (*Loader, error) {
	o.World = cmp.Or(o.World, 1)
	o.Prefetch = cmp.Or(o.Prefetch, loader.DefaultPrefetch)
	o.PrefetchBytes = cmp.Or(o.PrefetchBytes, DefaultPrefetchBytes)
	if err := shuffle.CheckRank(o.Rank, o.World); err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	if o.Prefetch < 1 || o.Prefetch > maxPrefetch {
		return nil, fmt.Errorf("client: Prefetch is %d: it must be in 1..%d", o.Prefetch, maxPrefetch)
	}
	if r.Steps() == 0 {
		return nil, fmt.Errorf("client: an epoch of %d samples has no whole batch: batch_size is %d and "+
			"drop_last is true", r.samples, r.spec.BatchSize)
	}
	l := &Loader{run: r, options: o, bad: loader.NewBadCounter(r.spec, r.samples, o.Rank, o.World)}
	l.demand = newDemand(r, o.Prefetch, o.PrefetchBytes, l.step)
	l.demand.bytes = r.RowBytes() * int64((r.spec.BatchSize-1)/o.World+1)
	l.state = r.State()
	if o.State != nil {
		var note string
		var err error
		if l.state, note, err = o.State.Resume(l.state, r.samples, r.spec.BatchSize, r.spec.DropLast,
			!o.AnyState); err != nil {
			return nil, err
		}
		if note != "" {
			r.client.options.Logger.Warn(note)
		}
	}
	return l, nil
}

// DefaultPrefetchBytes is the default of LoaderOptions.PrefetchBytes.
const DefaultPrefetchBytes = 2 << 30

// maxPrefetch bounds LoaderOptions.Prefetch, and the requests beyond it.
const maxPrefetch = 1024

// Next returns the batch of the next step, or io.EOF after the last epoch. The batch is the
// caller's until Release. While ctx is not done, Next waits; broken connections are made again.
// The error names the server, and has a *fault.Error in its chain if it is about a file; after an
// error, the same step is tried again.
func (l *Loader) Next(ctx context.Context) (*loader.Batch, error) {
	if l.closed {
		return nil, ErrClosed
	}
	next, ok := l.skip(cursor{l.state.Epoch, shuffle.Steps(l.state.Samples, l.run.spec.BatchSize, false)})
	if !ok {
		return nil, io.EOF
	}
	if l.session == nil {
		l.next = next
		l.session = newSession(l.run, l.demand)
	}
	l.session.want()
	select {
	case result := <-l.session.out:
		if result.err != nil {
			l.drop()
			return nil, result.err
		}
		if err := l.bad.Note(result.batch); err != nil {
			result.batch.Release()
			l.drop()
			return nil, err
		}
		l.session.taken(result.batch)
		l.state.Epoch = next.epoch
		l.state.Samples = min((next.step+1)*int64(l.run.spec.BatchSize), l.run.samples)
		return result.batch, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// step returns the ticket of the next step, and moves on to the one after it.
func (l *Loader) step() (t shuffle.Ticket, native, ok bool) {
	next, ok := l.skip(l.next)
	if !ok {
		return t, false, false
	}
	l.next = cursor{next.epoch, next.step + 1}
	return shuffle.StepTicket(next.epoch, next.step, l.run.spec.BatchSize, l.options.Rank, l.options.World),
		l.options.Native, true
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
	if l.session != nil {
		l.session.close()
		l.session = nil
	}
}

// State returns the state after the batches that Next returned.
func (l *Loader) State() shuffle.State { return l.state }

// All iterates over the remaining batches. Each is released when the loop body ends; a body that
// keeps one must copy it. The iteration ends after the first error.
func (l *Loader) All(ctx context.Context) iter.Seq2[*loader.Batch, error] {
	return loader.All(ctx, l.Next)
}

// Close cancels the requests, and waits until no goroutine is left. Batches that were returned stay
// valid until Release.
func (l *Loader) Close() {
	l.closed = true
	l.drop()
}
