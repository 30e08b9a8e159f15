package loader

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/crash"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/source"
)

// Start asks for the rows of a ticket and never blocks. The engine works on the tickets of a stream in
// the order in which they come, and on the tickets of several clients and streams (resources.WithCaller) in
// turns, as workers and memory allow. With native, tensors that are smaller in their
// native dtype keep it, and Tensor.Convert holds the arithmetic left to do. An invalid ticket ends with an error of
// kind limit, unsupported or not found.
func (e *Engine) Start(ctx context.Context, t steps.Ticket, native bool) *Pending {
	pending := &Pending{engine: e, ticket: t, native: native, done: make(chan struct{})}
	pending.ctx, pending.cancel = context.WithCancel(ctx)
	if e.spans != nil && t.Weights == nil && len(t.Positions) == 0 {
		pending.ctx = source.WithSpans(pending.ctx, e.spans)
	}
	err := crash.Call(func() (err error) {
		if pending.group, err = e.check(t); err == nil {
			err = pending.lay()
		}
		if pending.drawing = t.Weights != nil; err == nil && !pending.drawing {
			pending.announced = e.announce(t)
		}
		return err
	})
	if err != nil {
		crash.Report(e.options.Logger, err)
		pending.finish(err)
		return pending
	}
	draws := pending.drawing // which the queue guards from here on
	if !e.queue.put(pending) {
		pending.finish(ErrClosed)
	} else if draws {
		e.weighed.wake()
		go pending.weigh()
	}
	return pending
}

// weigh draws the samples of a ticket in the queue, and lets the queue take it.
func (p *Pending) weigh() {
	e := p.engine
	defer context.AfterFunc(p.ctx, e.queue.poke)() // a slow file holds up no ticket that is cancelled
	err := e.weighed.use(func() error {
		ticket := p.ticket
		var announced []func()
		err := crash.Call(func() (err error) {
			if ticket.Samples, err = e.weigh(p.ctx, p.ticket); err == nil {
				announced = e.announce(ticket)
			}
			return err
		})
		crash.Report(e.options.Logger, err)
		if !e.queue.weighed(p, ticket.Samples, announced, err) {
			for _, end := range announced {
				end()
			}
		}
		return nil
	})
	if err != nil {
		e.queue.weighed(p, nil, nil, err)
	}
}

// lay sets the layouts of the batch.
func (p *Pending) lay() (err error) {
	key := layoutKey{p.group, p.ticket.Rows(), p.native && !p.group.mixed.Load()}
	if p.layout, err = p.engine.layout(key); err != nil || !key.native {
		return err
	}
	key.native = false
	p.converted, err = p.engine.layout(key)
	return err
}

// announce says to tables which rasters a ticket reads, and returns what ends that. It comes before the ticket waits
// for memory, so a read for one ticket serves all that the caller has started.
func (e *Engine) announce(t steps.Ticket) (announced []func()) {
	if !e.announces {
		return nil
	}
	e.eachRaster(t, func(d *dataset, column int, row int64) {
		announced = append(announced, d.table.Fields[column].Announce(row))
	})
	return announced
}

// check returns the group of a ticket, or an error if it asks for positions or rows that do not exist, or that cannot
// stand in one batch.
func (e *Engine) check(t steps.Ticket) (*group, error) {
	switch last := e.plan.LastEpoch(); {
	case t.Epoch > last:
		return nil, fault.New(fault.Limit, "ticket", "epoch %d: the last one is %d", t.Epoch, last)
	case len(t.Positions)+len(t.Corners) > 0:
		if err := e.checkNamed(t); err != nil {
			return nil, err
		}
	case t.First < 0 || t.First > e.samples:
		return nil, fault.New(fault.NotFound, "ticket", "position %d of an epoch of %d", t.First, e.samples)
	case t.Count < 1 || t.RowStride < 1 || t.RowStart < 0 || t.RowStart >= t.RowStride:
		return nil, fault.New(fault.Unsupported, "ticket", "%d positions, rows from %d by %d", t.Count,
			t.RowStart, t.RowStride)
	case t.Count > e.spec.BatchSize:
		return nil, fault.New(fault.Limit, "ticket", "%d positions, at most a global batch of %d",
			t.Count, e.spec.BatchSize)
	}
	return e.groupOf(t)
}

// checkNamed is check of a ticket that names positions. Memory bounds its rows, as the global batch bounds the rows of
// a run.
func (e *Engine) checkNamed(t steps.Ticket) error {
	switch {
	case t.First != 0 || t.Count != 0 || t.RowStart != 0 || t.RowStride != 0:
		return fault.New(fault.Unsupported, "ticket", "%d positions, and a run of %d from %d",
			len(t.Positions), t.Count, t.First)
	case len(t.Corners) > 0 && len(t.Corners) != 2*len(t.Positions):
		return fault.New(fault.Unsupported, "ticket", "%d numbers of corners, for %d positions",
			len(t.Corners), len(t.Positions))
	case len(t.Corners) > 0 && slices.ContainsFunc(e.sets, (*dataset).drawsNoCorner):
		return fault.New(fault.Unsupported, "ticket", "corners are for random windows")
	}
	for _, p := range t.Positions {
		if p < 0 || p >= e.samples {
			return fault.New(fault.NotFound, "ticket", "position %d of an epoch of %d", p, e.samples)
		}
	}
	return nil
}

// prepare lays out the batch in the ticket's memory, which next has reserved.
func (p *Pending) prepare() error {
	engine := p.engine
	rows := p.ticket.Rows()
	if p.claim == nil {
		return cmp.Or(p.undrawn, p.ctx.Err()) // it failed, or was cancelled, while it waited
	}
	if p.memory == nil {
		p.memory = engine.memory.alloc(p.size())
	}
	memory := p.memory
	p.buf = memory.Bytes()
	p.batch = &batch.Batch{
		Epoch: p.ticket.Epoch, First: p.ticket.First, Rows: rows,
		Valid: make([]bool, rows), Positions: make([]int64, rows), Samples: make([]int64, rows),
	}
	claim := p.claim
	p.batch.SetMemory(memory, func(keep bool) { claim.giveBack(memory, keep) })
	p.batch.OnKeep(claim.end)
	p.begin()
	if engine.spans != nil && source.SpansOf(p.ctx) != nil {
		p.announced = append(p.announced, engine.spans.begin(p.draws, p.batch.Valid))
	}
	return nil
}

// begin draws the rows of the batch and decodes none of them.
func (p *Pending) begin() {
	engine, rows := p.engine, p.batch.Rows
	// Memory comes from earlier batches and still holds their bytes, so every row must be written,
	// padding too.
	p.draws = make([]shuffle.Draw, rows)
	for k := range rows {
		p.batch.Positions[k], p.batch.Samples[k] = p.ticket.Position(k, engine.samples), -1
		if pos := p.batch.Positions[k]; pos >= 0 {
			p.draws[k] = engine.plan.Draw(p.ticket, k)
			p.batch.Samples[k], p.batch.Valid[k] = p.draws[k].Sample, true
		}
	}
	p.errs = make([]rowErrors, rows)
	p.expect()
	p.expectSteps()
	rasters := len(p.layout.rasters)
	p.masks, p.masked = make([]sync.Once, rasters), make([]atomic.Bool, rasters)
	p.parts = p.columnsOfBatch()
}

// decodeAgain decodes the batch once more, without native tensors: its rasters differ in dtype. It comes
// when all units are done, and once for the tickets that have started meanwhile: the next ones have no native tensors.
func (p *Pending) decodeAgain(r *pixels.Reader) error {
	p.group.mixed.Store(true)
	p.layout, p.batch.Bad, p.same = p.converted, nil, nil
	p.begin()
	for row, pos := range p.batch.Positions {
		if pos < 0 {
			p.clearRow(row)
			continue
		}
		for u := range p.units(row) {
			if err := p.ctx.Err(); err != nil {
				return err
			}
			if err := crash.Call(func() error { return u.do(r) }); err != nil {
				crash.Report(p.engine.options.Logger, err)
				p.fail(u, err)
			}
		}
	}
	return nil
}
