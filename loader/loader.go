package loader

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"

	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/resources"
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
	// of its mixture. The engine logs the differences and their consequences
	// (steps.State.Resume).
	AnyState bool
	// Epochs ends the run after this many epochs, counted from epoch 0. Default: it never ends.
	Epochs uint64
	// Prefetch is how many batches to prepare ahead. If the engine's memory holds fewer beside the
	// one that the caller has, the loader prepares those, at least one, and the engine logs a
	// warning. Default Engine.Prefetch.
	Prefetch int
}

// Loader iterates over the steps of a run for one rank. It is for one goroutine.
type Loader struct {
	engine  *Engine
	options LoaderOptions
	state   steps.State
	next    cursor     // the next ticket to start
	ahead   []*Pending // started and not returned, in the order of steps
	cancel  context.CancelFunc
	ctx     context.Context
	bad     batch.BadCounter
}

// cursor is a step of an epoch.
type cursor struct {
	epoch uint64
	step  int64
}

// NewLoader returns a loader that begins at o.State, or at the start of epoch 0. The engine
// outlives it. A rank outside of the world, an epoch without a whole batch, and a state of another
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
	loader := &Loader{engine: e, options: o, bad: e.spec.BadCounter(e.Len(), o.Rank, o.World)}
	loader.state = e.State()
	if o.State != nil {
		var note string
		if loader.state, note, err = o.State.Resume(loader.state, e.Len(), e.spec.BatchSize, e.spec.Cut().Drops(),
			!o.AnyState); err != nil {
			return nil, err
		}
		if note != "" {
			e.options.Logger.Warn(note)
		}
		loader.next = cursor{loader.state.Epoch, steps.Count(loader.state.Samples, e.spec.BatchSize, false)}
	}
	ctx := resources.WithTurn(context.Background(), resources.Turn{Stream: loader})
	loader.ctx, loader.cancel = context.WithCancel(ctx)
	return loader, nil
}

// aheadBytes bounds what Engine.Prefetch has clients hold, too, in memory that the engine does not know of: 256 MiB are
// two seconds of a link of 1 Gbit/s.
const aheadBytes = 256 << 20

// Prefetch returns how many batches a loader of one rank of world prepares ahead by default: batch.DefaultPrefetch. Of
// remote files they are as many as a quarter of the memory and aheadBytes hold, at most batch.MaxAutoPrefetch: only
// many requests fill a link with small samples, and a batch waits for its slowest one.
func (e *Engine) Prefetch(world int) int {
	largest, err := e.bytesOf(steps.LocalRows(e.spec.BatchSize, max(world, 1)), false)
	if err != nil || !e.remote() {
		return batch.DefaultPrefetch
	}
	room := min(e.options.MemoryBytes/4, aheadBytes)
	return int(min(max(room/max(largest, 1), batch.DefaultPrefetch), batch.MaxAutoPrefetch))
}

// checkRun returns an error if a rank would get no batches, or none would be prepared ahead.
func (e *Engine) checkRun(rank, world, prefetch int) error {
	if err := steps.CheckRank(rank, world); err != nil {
		return fmt.Errorf("loader: %w", err)
	}
	if prefetch < 1 {
		return fmt.Errorf("loader: Prefetch is %d: it must be at least 1", prefetch)
	}
	if e.Steps() == 0 {
		return fmt.Errorf("loader: an epoch of %d samples has no whole batch: batch_size is %d and last is \"drop\"",
			e.Len(), e.spec.BatchSize)
	}
	return nil
}

// Next returns the batch of the next step, or io.EOF after the last epoch. The caller holds the
// batch until Release. If ctx ends first, the work goes on and the next call returns its result.
// After any other error the next call tries the same step again. If more samples of an epoch are
// bad than Spec.BadLimit allows, it returns an error of kind limit.
func (l *Loader) Next(ctx context.Context) (*batch.Batch, error) {
	next, ok := l.skip(cursor{l.state.Epoch, steps.Count(l.state.Samples, l.engine.spec.BatchSize, false)})
	if !ok {
		return nil, io.EOF
	}
	if l.ctx.Err() != nil {
		return nil, ErrClosed
	}
	l.fill()
	select {
	case <-l.ahead[0].done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	batch, err := l.ahead[0].Wait(ctx)
	if err != nil {
		l.drop()
		l.next = next
		return nil, err
	}
	l.ahead = append(l.ahead[:0], l.ahead[1:]...)
	if err := l.bad.Note(batch); err != nil {
		batch.Release()
		l.drop()
		l.next = next
		return nil, err
	}
	batch.Keep()
	// The state moves only now, so that a step that failed is not counted as yielded.
	l.state.Epoch = next.epoch
	l.state.Samples = min((next.step+1)*int64(l.engine.spec.BatchSize), l.engine.Len())
	return batch, nil
}

// skip moves a cursor past the end of an epoch to the next epoch. It reports false if there is
// none.
func (l *Loader) skip(c cursor) (cursor, bool) {
	if c.step >= l.engine.Steps() {
		c = cursor{c.epoch + 1, 0}
	}
	return c, l.options.Epochs == 0 || c.epoch < l.options.Epochs
}

// fill starts tickets until Prefetch are in work.
func (l *Loader) fill() {
	for len(l.ahead) < l.options.Prefetch {
		found, ok := l.skip(l.next)
		if !ok {
			return
		}
		t := l.engine.spec.Cut().Ticket(found.epoch, found.step, l.engine.samples, l.options.Rank, l.options.World)
		l.ahead = append(l.ahead, l.engine.Start(l.ctx, t, false))
		l.next = cursor{found.epoch, found.step + 1}
	}
}

// drop cancels the started tickets.
func (l *Loader) drop() {
	for _, p := range l.ahead {
		p.Cancel()
	}
	l.ahead = l.ahead[:0]
}

// State returns the state after the batches that Next returned.
func (l *Loader) State() steps.State { return l.state }

// All iterates over the remaining batches. It releases each when the loop body ends, so a body that
// keeps one must copy it. The iteration ends after the first error. A loader has one position:
// after a break another iteration continues from it, and two iterations at a time share the
// batches.
func (l *Loader) All(ctx context.Context) iter.Seq2[*batch.Batch, error] {
	return batch.All(ctx, l.Next)
}

// Close cancels the tickets in work. Batches that were returned stay valid until Release.
func (l *Loader) Close() {
	l.cancel()
	l.drop()
}
