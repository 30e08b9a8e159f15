package loader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/shuffle"
)

// LoaderOptions say which part of a run a loader iterates over.
type LoaderOptions struct {
	// Rank of World gets every World-th row of every global batch. Default: 0 of 1.
	Rank, World int
	// State resumes a run. It must come from the same spec on the same data, unless AnyState is
	// set.
	State *shuffle.State
	// AnyState accepts the state of another run, such as one over less data or with other weights
	// of its mixture. The engine logs the differences and their consequences
	// (shuffle.State.Resume).
	AnyState bool
	// Epochs ends the run after this many epochs, counted from epoch 0. Default: it never ends.
	Epochs uint64
	// Prefetch is how many batches to prepare ahead. If the engine's memory holds fewer beside the
	// one that the caller has, the loader prepares those, at least one, and the engine logs a
	// warning. Default DefaultPrefetch.
	Prefetch int
}

// Loader iterates over the steps of a run for one rank. It is for one goroutine.
type Loader struct {
	engine  *Engine
	options LoaderOptions
	state   shuffle.State
	next    cursor     // the next ticket to start
	ahead   []*Pending // started and not returned, in the order of steps
	cancel  context.CancelFunc
	ctx     context.Context
	bad     BadCounter
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
	o.Prefetch = cmp.Or(o.Prefetch, DefaultPrefetch)
	if err := e.checkRun(o.Rank, o.World, o.Prefetch); err != nil {
		return nil, err
	}
	fit, err := e.BatchesFit(shuffle.LocalRows(e.spec.BatchSize, o.World))
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
	loader := &Loader{engine: e, options: o, bad: NewBadCounter(e.spec, e.Len(), o.Rank, o.World)}
	loader.state = e.State()
	if o.State != nil {
		var note string
		if loader.state, note, err = o.State.Resume(loader.state, e.Len(), e.spec.BatchSize, e.spec.DropsLast(),
			!o.AnyState); err != nil {
			return nil, err
		}
		if note != "" {
			e.options.Logger.Warn(note)
		}
		loader.next = cursor{loader.state.Epoch, shuffle.Steps(loader.state.Samples, e.spec.BatchSize, false)}
	}
	ctx := resources.WithTurn(context.Background(), resources.Turn{Stream: loader})
	loader.ctx, loader.cancel = context.WithCancel(ctx)
	return loader, nil
}

// checkRun returns an error if a rank would get no batches, or none would be prepared ahead.
func (e *Engine) checkRun(rank, world, prefetch int) error {
	if err := shuffle.CheckRank(rank, world); err != nil {
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
func (l *Loader) Next(ctx context.Context) (*Batch, error) {
	next, ok := l.skip(cursor{l.state.Epoch, shuffle.Steps(l.state.Samples, l.engine.spec.BatchSize, false)})
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
		t := l.engine.spec.Ticket(found.epoch, found.step, l.engine.samples, l.options.Rank, l.options.World)
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
func (l *Loader) State() shuffle.State { return l.state }

// All iterates over the remaining batches. It releases each when the loop body ends, so a body that
// keeps one must copy it. The iteration ends after the first error. A loader has one position:
// after a break another iteration continues from it, and two iterations at a time share the
// batches.
func (l *Loader) All(ctx context.Context) iter.Seq2[*Batch, error] { return All(ctx, l.Next) }

// BadCounter counts the bad rows that one loader meets in an epoch, for the spec's BadLimit.
//
// A state has no count: it is the same on every rank and for any world size, but a rank knows only
// its own bad rows. So batches are the same after a resume and for any world size, but the step at
// which a limit ends a run is not.
type BadCounter struct {
	limit       int64 // -1 without a bound
	rank, world int
	begun       bool
	epoch       uint64
	count       int64
	from        int64 // position of the first batch that was counted in the epoch
	first       int64 // batches that begin before this position were counted
}

// NewBadCounter returns the counter of one rank of world loaders that share epochs of n samples.
// Each loader counts its own rows: the rate applies to the rows that it gets of an epoch, the count
// is the same for every loader.
func NewBadCounter(s Spec, n int64, rank, world int) BadCounter {
	counter := BadCounter{limit: -1, rank: rank, world: world}
	if s.BadLimit == nil {
		return counter
	}
	if s.BadLimit.Count != nil {
		counter.limit = *s.BadLimit.Count
	}
	if s.BadLimit.Rate != nil {
		rows := float64(shuffle.RankRows(n, s.BatchSize, rank, world, s.DropsLast()))
		bound := int64(*s.BadLimit.Rate * rows)
		if float64(bound+1) <= rows && float64(bound+1)/rows <= *s.BadLimit.Rate {
			bound++ // the product was rounded down: 0.29 of 100 is 29
		}
		if counter.limit < 0 || bound < counter.limit {
			counter.limit = bound
		}
	}
	return counter
}

// Limit returns how many bad rows a loader may meet in an epoch, or -1 if there is no limit.
func (c *BadCounter) Limit() int64 { return c.limit }

// Note counts the bad rows of a batch, the next one of the loader. It returns an error of kind
// limit if the batch's epoch has more than allowed. Bad rows before a resume do not count. A batch
// that is passed again is counted once.
func (c *BadCounter) Note(b *Batch) error {
	if c.limit < 0 {
		return nil
	}
	if b.Epoch != c.epoch || !c.begun {
		c.begun, c.epoch, c.count, c.from, c.first = true, b.Epoch, 0, b.First, b.First
	}
	if b.First >= c.first {
		c.first = b.First + 1
		for i := range b.Bad { // in the order of the rows; a row of a sequence may have several bad steps
			if i == 0 || b.Bad[i].Row != b.Bad[i-1].Row {
				c.count++
			}
		}
	}
	if c.count <= c.limit || len(b.Bad) == 0 {
		return nil
	}
	last := b.Bad[len(b.Bad)-1]
	name := ""
	if c.world > 1 {
		name = fmt.Sprintf(" among the rows of rank %d of %d", c.rank, c.world)
	}
	if c.from > 0 {
		name += fmt.Sprintf(" since position %d, where this loader began", c.from)
	}
	return fault.New(fault.Limit, "bad samples", fault.NoOffset,
		"%d in epoch %d%s, over the limit of %d; the last one, at position %d: %v",
		c.count, b.Epoch, name, c.limit, last.Position, last.Err)
}

// All iterates over the batches of next until io.EOF, as Loader.All does. It serves other sources
// of batches.
func All(ctx context.Context, next func(context.Context) (*Batch, error)) iter.Seq2[*Batch, error] {
	return func(yield func(*Batch, error) bool) {
		for {
			batch, err := next(ctx)
			if errors.Is(err, io.EOF) {
				return
			}
			goOn := yield(batch, err)
			if err != nil {
				return
			}
			batch.Release()
			if !goOn {
				return
			}
		}
	}
}

// Close cancels the tickets in work. Batches that were returned stay valid until Release.
func (l *Loader) Close() {
	l.cancel()
	l.drop()
}
