package loader

import (
	"context"
	"slices"

	"github.com/chaski-eo/chaski/internal/crash"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/source"
)

// start starts the workers and the dispatcher. They run until Close.
func (e *Engine) start() {
	e.units = make(chan workUnit, e.unitsAhead())
	ctx, stop := context.WithCancel(context.Background())
	e.stop = stop
	e.done.Go(func() { e.dispatch(ctx) })
	e.least, e.readers = e.fetchers(), readerBytes()
	e.workers.Store(int64(e.least))
	// The first batch then has workers for all of its small samples. It stays unknown if it is of one dataset: of
	// windows, the first ones tell.
	if !slices.ContainsFunc(e.sets, func(d *dataset) bool { return d.perWorker < 0 }) {
		for _, d := range e.sets {
			e.peak.Store(max(e.peak.Load(), d.perWorker))
		}
	}
	for range e.least {
		e.done.Go(func() { e.work(ctx) })
	}
	if e.toPlan != nil {
		e.done.Go(func() { e.newTilePlanner().plan(ctx, e.toPlan) })
	}
}

// unitsAhead returns how many units wait for workers: those of all batches in flight, if these are few. A worker that
// takes one of a full channel wakes the dispatcher, which costs as much as a small sample.
func (e *Engine) unitsAhead() int {
	each := 1
	for _, g := range e.groups {
		each = max(each, g.perRow)
	}
	return min(max(autoBatches*e.spec.BatchSize*each, 256), 4096)
}

// dispatch gives memory to the tickets in their turns, and hands their units to the workers.
func (e *Engine) dispatch(ctx context.Context) {
	defer close(e.units)
	order, tickets := int64(1), int64(0)
	if e.toPlan != nil {
		defer close(e.toPlan)
	}
	for {
		pending := e.queue.take(ctx)
		if pending == nil {
			e.queue.failAll()
			return
		}
		if err := crash.Call(pending.prepare); err != nil {
			crash.Report(e.options.Logger, err)
			pending.finish(err)
			continue
		}
		tickets++
		pending.ctx = source.WithOrder(pending.ctx, tickets) // before another goroutine has the ticket
		if e.toPlan != nil {
			pending.plan.order = order
			order += int64(len(pending.draws))
			select {
			case e.toPlan <- plannedTicket{pending.ctx, pending.ticket, &pending.plan}:
			default: // it goes on without, since headers come slowly
			}
		}
		pending.run = e.ahead.note(resources.CallerOf(pending.ctx), pending.ticket)
		pending.hand(func(u workUnit) { e.send(ctx, u) })
	}
}

// send hands a unit to the workers. If none is free it starts one more, as far as their memory is small.
func (e *Engine) send(ctx context.Context, u workUnit) {
	e.units <- u
	if len(e.units) > 0 && e.workers.Load() < int64(e.workersFor(e.peak.Load())) { // only the dispatcher adds
		e.workers.Add(1)
		e.done.Go(func() { e.work(ctx) })
	}
}

// retires notes what a reader holds after a unit. It reports whether its worker must end, and counts it no more: units
// have become so large that their memory is enough for fewer workers.
func (e *Engine) retires(u workUnit, r *pixels.Reader) bool {
	if u.field < 0 || !e.options.Waits() {
		return false
	}
	held := r.HeldBytes()
	for old := e.peak.Load(); held > old && !e.peak.CompareAndSwap(old, held); old = e.peak.Load() {
	}
	for n := e.workers.Load(); n > int64(e.workersFor(e.peak.Load())); n = e.workers.Load() {
		if e.workers.CompareAndSwap(n, n-1) {
			return true
		}
	}
	return false
}

// hand sends the units of the ticket to the workers, row by row. It fills the rows of padding
// itself.
func (p *Pending) hand(send func(workUnit)) {
	p.noteSame()
	units := int64(1) // for hand itself, so workers do not finish the batch before all of its units are sent
	for _, pos := range p.batch.Positions {
		if pos >= 0 {
			units += int64(p.group.perRow)
		}
	}
	p.todo.Store(units)
	for row, pos := range p.batch.Positions {
		if pos < 0 {
			if err := crash.Call(func() error { p.clearRow(row); return nil }); err != nil {
				crash.Report(p.engine.options.Logger, err)
				p.fail(workUnit{p: p, row: row, field: -1}, err)
			}
			continue
		}
		for u := range p.units(row) {
			if !u.follows() {
				send(u)
			}
		}
	}
	_ = p.complete(nil) // hand is done; Wait returns the error
}

// work runs units until the dispatcher closes the channel.
func (e *Engine) work(ctx context.Context) {
	reader := e.newReader()
	defer func() { endReader(reader) }() // the last one
	for unit := range e.units {
		reader.Client = unit.p.client
		reader.Work()
		reader.Clock.Waited()
		if same := unit.p.same[unit]; same != nil {
			for _, u := range same.units {
				reader = e.serve(ctx, u, reader)
			}
			same.end()
		} else {
			reader = e.serve(ctx, unit, reader)
		}
		reader.Rest()
		if e.retires(unit, reader) {
			break
		}
	}
	reader.Clock.Waited()
}

// serve does a unit, and returns the reader for the next one.
func (e *Engine) serve(ctx context.Context, unit workUnit, reader *pixels.Reader) *pixels.Reader {
	// A unit of a cancelled ticket is dropped, but complete must count it: otherwise the
	// ticket's memory would be lost.
	err := unit.p.ctx.Err()
	if ctx.Err() != nil {
		err = ErrClosed
	}
	if err == nil {
		err = unit.p.attempt(unit, reader)
	}
	if err != nil {
		unit.p.fail(unit, err)
	}
	reader.Clock.Lap(resources.StageOther)
	e.note(unit, reader.Clock.Done())
	if crash.Is(unit.p.complete(reader)) || crash.Is(err) {
		// The panic may have left the buffers and decoders of the reader half changed.
		endReader(reader)
		reader = e.newReader()
		reader.Client = unit.p.client
	}
	reader.Clock.Lap(resources.StageOther)
	return reader
}

// note counts the work on a unit, with Options.Stages.
func (e *Engine) note(u workUnit, spent resources.Spent) {
	if e.slow.sources == nil || u.field < 0 {
		return
	}
	set := u.p.set(u.row)
	e.slow.note(set.number, spent, func() (id, field string) {
		return u.p.ref(u.row).ID, set.rasters[u.field].Name
	})
}

// complete counts one unit as done. The last unit finishes the batch, and complete returns its error.
// r is the reader of the worker, or nil if the dispatcher calls it.
func (p *Pending) complete(r *pixels.Reader) error {
	if p.todo.Add(-1) > 0 {
		return nil
	}
	err := crash.Call(func() error {
		err := p.settle(r)
		if p.mixed.Load() {
			if r == nil {
				r = p.engine.newReader()
				r.Client = p.client
				defer endReader(r)
			}
			if err = p.decodeAgain(r); err == nil {
				err = p.settle(r)
			}
		}
		if err != nil {
			return err
		}
		return p.tensors()
	})
	crash.Report(p.engine.options.Logger, err)
	p.finish(err)
	return err
}
