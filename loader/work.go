package loader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/crash"
	"github.com/chaski-eo/chaski/internal/crs/warp"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/dryrun"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
)

// ErrClosed is the error of tickets that were unfinished when the engine was closed.
var ErrClosed = errors.New("loader: the engine is closed")

// Pending is a ticket in work. The caller must call Wait or Cancel, and must not call Cancel after
// Wait has returned a batch.
type Pending struct {
	engine *Engine
	group  *group // of the ticket's positions
	ticket steps.Ticket
	native bool
	ctx    context.Context
	cancel context.CancelFunc

	client any      // for whom it is: see resources.Turn
	next   *Pending // behind it in the queue
	claim  *claim   // on the window of its client; nil before its turn
	layout *layout
	memory batch.Buffer
	buf    []byte // bytes of memory
	batch  *batch.Batch
	draws  []shuffle.Draw // for each row, the sample that stands there
	parts  []column       // all of the batch that is not a raster field
	masks  []sync.Once    // for each raster field: sets the mask to ones
	masked []atomic.Bool  // for each raster field: the mask is in use
	errs   []rowErrors    // for each row
	todo   atomic.Int64   // units that are not done
	order  int64          // of its first row in Engine.tiles
	plan   tilePlan
	run    *runAhead // nil unless its reads were announced
	done   chan struct{}
	err    error

	state atomic.Int32
}

const (
	// States of a Pending. They decide who releases the batch: the caller of Wait, or Cancel, if the
	// work finished first; finish itself if Cancel came first. Both use compare-and-swap, so that
	// exactly one of them releases it.
	working int32 = iota
	finished
	abandoned
)

// unit is the smallest piece of work: one raster field of one row, or of one step of it in a
// sequence. Field -1 stands for the metadata columns of the row (of all steps), its window
// and its shapes.
type unit struct {
	p                *Pending
	row, field, step int
}

// Start asks for the rows of a ticket and never blocks. The engine works on the tickets of a stream in
// the order in which they come, and on the tickets of several clients and streams (resources.WithTurn) in
// turns, as workers and memory allow. With native, tensors that are smaller in their
// native dtype keep it, and Tensor.Convert holds the arithmetic left to do. An invalid ticket ends
// with an error of kind not found, unsupported or limit.
func (e *Engine) Start(ctx context.Context, t steps.Ticket, native bool) *Pending {
	pending := &Pending{engine: e, ticket: t, native: native, done: make(chan struct{})}
	pending.ctx, pending.cancel = context.WithCancel(ctx)
	err := crash.Call(func() (err error) {
		if pending.group, err = e.check(t); err == nil {
			pending.layout, err = e.layout(layoutKey{pending.group, t.Rows(), native})
		}
		return err
	})
	if err != nil {
		crash.Report(e.options.Logger, err)
		pending.finish(err)
		return pending
	}
	if !e.queue.put(pending) {
		pending.finish(ErrClosed)
	}
	return pending
}

// check returns the group of a ticket, or an error if it asks for positions or rows that do not exist, or that cannot
// stand in one batch.
func (e *Engine) check(t steps.Ticket) (*group, error) {
	switch last := e.plan.LastEpoch(); {
	case t.Epoch > last:
		return nil, fault.New(fault.Limit, "ticket", fault.NoOffset, "epoch %d: the last one is %d", t.Epoch, last)
	case len(t.Positions)+len(t.Corners) > 0:
		if err := e.checkNamed(t); err != nil {
			return nil, err
		}
	case t.First < 0 || t.First > e.samples:
		return nil, fault.New(fault.NotFound, "ticket", fault.NoOffset, "position %d of an epoch of %d", t.First,
			e.samples)
	case t.Count < 1 || t.RowStride < 1 || t.RowStart < 0 || t.RowStart >= t.RowStride:
		return nil, fault.New(fault.Unsupported, "ticket", fault.NoOffset, "%d positions, rows from %d by %d", t.Count,
			t.RowStart, t.RowStride)
	case t.Count > e.spec.BatchSize:
		return nil, fault.New(fault.Limit, "ticket", fault.NoOffset, "%d positions, at most a global batch of %d",
			t.Count, e.spec.BatchSize)
	}
	return e.groupOf(t)
}

// checkNamed is check of a ticket that names positions. Memory bounds its rows, as the global batch bounds the rows of
// a run.
func (e *Engine) checkNamed(t steps.Ticket) error {
	switch {
	case t.First != 0 || t.Count != 0 || t.RowStart != 0 || t.RowStride != 0:
		return fault.New(fault.Unsupported, "ticket", fault.NoOffset, "%d positions, and a run of %d from %d",
			len(t.Positions), t.Count, t.First)
	case len(t.Corners) > 0 && len(t.Corners) != 2*len(t.Positions):
		return fault.New(fault.Unsupported, "ticket", fault.NoOffset, "%d numbers of corners, for %d positions",
			len(t.Corners), len(t.Positions))
	case len(t.Corners) > 0 && slices.ContainsFunc(e.sets, (*dataset).drawsNoCorner):
		return fault.New(fault.Unsupported, "ticket", fault.NoOffset, "corners are for random windows")
	}
	for _, p := range t.Positions {
		if p < 0 || p >= e.samples {
			return fault.New(fault.NotFound, "ticket", fault.NoOffset, "position %d of an epoch of %d", p, e.samples)
		}
	}
	return nil
}

// Wait returns the batch, or the error of the first row that has one. If ctx ends first, it cancels
// the ticket and returns the error of ctx.
func (p *Pending) Wait(ctx context.Context) (*batch.Batch, error) {
	select {
	case <-p.done:
	case <-ctx.Done():
		p.Cancel()
		return nil, ctx.Err()
	}
	if p.err != nil {
		return nil, p.err
	}
	return p.batch, nil
}

// Cancel gives up the ticket. Its memory is free as soon as no worker writes to it.
func (p *Pending) Cancel() {
	p.cancel()
	if !p.state.CompareAndSwap(working, abandoned) && p.state.CompareAndSwap(finished, abandoned) && p.batch != nil {
		p.batch.Release()
	}
}

// finish ends the ticket with its batch, or with an error.
func (p *Pending) finish(err error) {
	p.cancel()
	p.plan.end(p.engine.tiles)
	p.run.endTicket(p.ticket)
	// All units are done by now, so no worker writes to the memory and another batch may use it.
	if err != nil && p.memory != nil {
		p.claim.giveBack(p.memory, true)
		p.memory, p.buf, p.batch = nil, nil, nil
	}
	if err != nil {
		p.claim.end()
	}
	p.err = err
	// Cancel came first. No caller waits for the batch, so its memory must be given back here.
	if !p.state.CompareAndSwap(working, finished) && p.batch != nil {
		p.batch.Release()
	}
	close(p.done)
}

// start starts the workers and the dispatcher. They run until Close.
func (e *Engine) start() {
	ctx, stop := context.WithCancel(context.Background())
	e.stop = stop
	e.done.Go(func() { e.dispatch(ctx) })
	e.fewest = e.fetchers()
	e.readers.Store(int64(e.fewest))
	for range e.fewest {
		e.done.Go(func() { e.work(ctx) })
	}
	if e.plans != nil {
		e.done.Go(func() { planTiles(e.tiles, e.plans) })
	}
}

// dispatch gives memory to the tickets in their turns, and hands their units to the workers.
func (e *Engine) dispatch(ctx context.Context) {
	defer close(e.units)
	order, tickets := int64(1), int64(0)
	if e.plans != nil {
		defer close(e.plans)
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
		if e.plans != nil {
			pending.order = order
			order += int64(len(pending.draws))
			select {
			case e.plans <- pending.planned():
			default: // it goes on without, since headers come slowly
			}
		}
		pending.run = e.ahead.note(resources.TurnOf(pending.ctx), pending.ticket)
		pending.hand(func(u unit) { e.send(ctx, u) })
	}
}

// planned returns what Engine.tiles is to be told about the ticket.
func (p *Pending) planned() planned {
	engine, draws := p.engine, slices.Clone(p.draws) // as they stand before substitutes replace bad ones
	return planned{&p.plan, p.order, len(draws), func(k int) ([]pixels.Need, error) {
		if p.ticket.Position(k, engine.samples) < 0 || !engine.set(&draws[k]).sharesChunks() {
			return nil, nil
		}
		return engine.needs(p.ctx, &draws[k])
	}}
}

// prepare lays out the batch in the ticket's memory, which next has reserved.
func (p *Pending) prepare() error {
	engine := p.engine
	rows := p.ticket.Rows()
	if p.claim == nil {
		return p.ctx.Err() // it was cancelled while it waited
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
	rasters := len(p.group.lead().rasters)
	p.masks, p.masked = make([]sync.Once, rasters), make([]atomic.Bool, rasters)
	p.parts = engine.columns(p)
	return nil
}

// size returns the bytes of memory that the ticket takes.
func (p *Pending) size() int { return max(p.layout.bytes, 1) }

// send hands a unit to the workers. If none is free it starts one more, as far as their memory is small.
func (e *Engine) send(ctx context.Context, u unit) {
	e.units <- u
	if len(e.units) > 0 && e.readers.Load() < int64(e.workersFor(e.peak.Load())) { // only the dispatcher adds
		e.readers.Add(1)
		e.done.Go(func() { e.work(ctx) })
	}
}

// surplus notes what a reader holds after a unit, and reports whether its worker is to end: larger samples have come.
func (e *Engine) surplus(u unit, r *pixels.Reader) bool {
	if u.field < 0 || !e.options.Waits() {
		return false
	}
	held := r.HeldBytes()
	for old := e.peak.Load(); held > old && !e.peak.CompareAndSwap(old, held); old = e.peak.Load() {
	}
	for n := e.readers.Load(); n > int64(e.workersFor(e.peak.Load())); n = e.readers.Load() {
		if e.readers.CompareAndSwap(n, n-1) {
			return true
		}
	}
	return false
}

// hand sends the units of the ticket to the workers, row by row. It fills the rows of padding
// itself.
func (p *Pending) hand(send func(unit)) {
	// Otherwise workers could finish the batch before all of its units are sent.
	p.todo.Store(1)
	for place, pos := range p.batch.Positions {
		if pos < 0 {
			if err := crash.Call(func() error { p.clearRow(place); return nil }); err != nil {
				crash.Report(p.engine.options.Logger, err)
				p.fail(unit{p, place, -1, 0}, err)
			}
			continue
		}
		p.todo.Add(int64(p.group.perRow))
		for u := range p.units(place) {
			send(u)
		}
	}
	_ = p.complete(nil) // Wait returns it
}

// units yields the units of a row.
func (p *Pending) units(k int) iter.Seq[unit] {
	return func(yield func(unit) bool) {
		for field, step := range p.group.lead().images() {
			if !yield(unit{p, k, field, step}) {
				return
			}
		}
		if p.engine.hasMetadataUnit(p.group) {
			yield(unit{p, k, -1, 0})
		}
	}
}

// work runs units until the dispatcher closes the channel.
func (e *Engine) work(ctx context.Context) {
	reader := e.newReader()
	defer func() { endReader(reader) }() // the last one
	for {
		unit, ok := e.nextUnit(reader)
		if !ok {
			break
		}
		reader.Clock.Waited()
		// A unit of a cancelled ticket is not run, but it must be counted by complete, otherwise
		// the ticket's memory would never come back.
		err := unit.p.ctx.Err()
		if ctx.Err() != nil {
			err = ErrClosed
		}
		if err == nil {
			err = crash.Call(func() error { return unit.do(reader) })
		}
		if err != nil {
			crash.Report(e.options.Logger, err)
			unit.p.fail(unit, err)
		}
		reader.Clock.Lap(resources.StageOther)
		e.note(unit, reader.Clock.Done())
		if crash.Is(unit.p.complete(reader)) || crash.Is(err) {
			// The panic may have left the buffers and decoders of the reader half changed.
			endReader(reader)
			reader = e.newReader()
		}
		reader.Clock.Lap(resources.StageOther)
		if e.surplus(unit, reader) {
			break
		}
	}
	reader.Clock.Waited()
}

// note counts the work on a unit, with Options.Stages.
func (e *Engine) note(u unit, spent resources.Spent) {
	if e.slow.sources == nil || u.field < 0 {
		return
	}
	set := u.p.set(u.row)
	e.slow.note(set.number, spent, func() (id, field string) {
		return u.p.ref(u.row).ID, set.rasters[u.field].Name
	})
}

// Slow returns where the time of the workers went, by source, and the rasters that took longest. Both are empty without
// Options.Stages.
func (e *Engine) Slow() (sources []SourceTime, slowest []RasterTime) {
	sources, slowest = e.slow.times()
	for i := range sources {
		sources[i].Source = cmp.Or(e.sets[i].name, e.spec.Source)
	}
	return sources, slowest
}

// nextUnit returns the next unit, with a turn for it if files are local. ok is false once the dispatcher has closed the
// channel.
func (e *Engine) nextUnit(r *pixels.Reader) (u unit, ok bool) {
	select {
	case u, ok = <-e.units:
	default:
		r.Slot.Rest()
		u, ok = <-e.units
	}
	if !ok || e.options.Turns == nil {
		return u, ok
	}
	r.Slot.For(u.p.client)
	if !e.options.Waits() {
		_ = r.Slot.Tick(u.p.ctx) // work looks at the context itself
	}
	return u, ok
}

// endReader ends the use of a reader.
func endReader(r *pixels.Reader) {
	r.Clock.Stop()
	r.Slot.Rest()
}

// newReader returns a reader for one worker. The caller must end it with endReader.
func (e *Engine) newReader() *pixels.Reader {
	reader := pixels.NewReader(e.options)
	reader.SetClock(e.options.Stages.Clock())
	reader.Slot.Urgent() // somebody waits for the batch
	return reader
}

// failMu guards Pending.errs of all tickets. One lock is enough since errors are rare. settle reads
// errs without it, after the last unit has called complete.
var failMu sync.Mutex

// rowErrors holds the errors of one row.
type rowErrors struct {
	all   error   // concerns the whole row; of several, the one that outranks the others
	steps []error // of a sequence, the error of each single step, or nil
}

// worst returns the error that outranks all others of the row.
func (r *rowErrors) worst() error {
	err := r.all
	for _, e := range r.steps {
		if e != nil && outranks(e, err) {
			err = e
		}
	}
	return err
}

// step returns the error of a step.
func (r *rowErrors) step(i int) error {
	if r.all != nil || len(r.steps) == 0 {
		return r.all
	}
	return r.steps[i]
}

// fail records the error of a unit.
func (p *Pending) fail(u unit, err error) {
	failMu.Lock()
	defer failMu.Unlock()
	row := &p.errs[u.row]
	target := &row.all
	lead := p.group.lead()
	if n := lead.span(); n > 0 && u.field >= 0 && lead.rasters[u.field].Steps > 0 {
		if row.steps == nil {
			row.steps = make([]error, n)
		}
		target = &row.steps[u.step]
	}
	if outranks(err, *target) {
		*target = err
	}
}

// outranks reports whether err is reported instead of other, whichever came first. Errors that no
// policy covers (of the network, for example) come before faults of a sample; among equals the text
// decides, so that a run reports the same error in any order of the workers.
func outranks(err, other error) bool {
	if other == nil {
		return true
	}
	if system := fault.KindOf(err) == 0; system != (fault.KindOf(other) == 0) {
		return system
	}
	return err.Error() < other.Error()
}

// complete counts one unit as done. The last unit finishes the batch, and complete returns its error.
// r is the reader of the worker, or nil if the dispatcher calls it.
func (p *Pending) complete(r *pixels.Reader) error {
	if p.todo.Add(-1) > 0 {
		return nil
	}
	err := crash.Call(func() error {
		if err := p.settle(r); err != nil {
			return err
		}
		return p.tensors()
	})
	crash.Report(p.engine.options.Logger, err)
	p.finish(err)
	return err
}

// settle applies the bad-sample policy to the rows with errors.
func (p *Pending) settle(r *pixels.Reader) error {
	policy := p.engine.spec.BadSamples
	for place := range p.errs {
		err := p.errs[place].worst()
		if err == nil {
			continue
		}
		if policy == spec.BadError || fault.KindOf(err) == 0 {
			return p.atRow(place, err)
		}
		if policy == spec.BadFill && p.errs[place].all == nil && p.errs[place].steps != nil {
			p.fillSteps(place)
			continue
		}
		p.batch.Bad = append(p.batch.Bad, batch.Bad{
			Row: place, Position: p.batch.Positions[place], Err: err, Source: p.set(place).name, Sample: p.ref(place),
		})
		if policy == spec.BadReplace {
			if r == nil {
				// The dispatcher finishes a batch if the workers were faster. It needs a clock of
				// its own, otherwise the chunks of the substitute would be missing from Stages.
				r = p.engine.newReader()
				r.Slot.For(p.client)
				defer endReader(r)
			}
			good, err := p.replace(r, place)
			if err != nil {
				return p.atRow(place, err)
			}
			if good {
				p.batch.Bad[len(p.batch.Bad)-1].Instead = p.ref(place)
				continue
			}
		}
		// Now the error is of all steps, so that extras marks them as missing.
		p.errs[place].all = err
		p.batch.Valid[place] = policy == spec.BadFill
		p.clearRow(place)
	}
	return nil
}

// fillSteps marks the bad steps of a row as missing in all fields, and keeps its good steps.
func (p *Pending) fillSteps(k int) {
	steps := p.errs[k].steps
	for step, err := range steps {
		if err == nil {
			continue
		}
		row := p.engine.rowOf(&p.draws[k], step)
		p.batch.Bad = append(p.batch.Bad, batch.Bad{Row: k, Position: p.batch.Positions[k], Err: err,
			Source: p.set(k).name, Sample: p.engine.refOf(p.ctx, &p.draws[k], row)})
		for i, r := range p.group.lead().rasters {
			if step < r.Steps {
				p.clearStep(i, k, step)
			}
		}
		if p.set(k).steps == 0 { // values are of the row, not of the step
			continue
		}
		for _, c := range p.parts {
			if c.clearStep != nil {
				c.clearStep(k, step)
			}
		}
	}
}

// maxID bounds the id of a bad sample in a batch, in bytes, because ids come from tables, which are
// hostile.
const maxID = 4096

// ref names the sample that stands in a row.
func (p *Pending) ref(k int) *batch.SampleRef {
	return p.engine.refOf(p.ctx, &p.draws[k], p.draws[k].Row)
}

// refOf names a row of the table that belongs to the sample of a draw, such as a step of a sequence.
func (e *Engine) refOf(ctx context.Context, draw *shuffle.Draw, row int64) *batch.SampleRef {
	id, err := e.ID(ctx, draw.Dataset, row)
	if err != nil {
		id = "" // the number of the row still names it
	}
	return &batch.SampleRef{Index: draw.Sample, Row: row, ID: id[:min(len(id), maxID)]}
}

// atRow wraps the error of a row with its sample. If no substitute could be read, that is the last
// substitute.
func (p *Pending) atRow(k int, err error) error {
	return p.engine.atSample(p.ctx, p.draws[k], p.ticket.Epoch, p.batch.Positions[k], err)
}

// atSample wraps the error about the sample of a draw.
func (e *Engine) atSample(ctx context.Context, draw shuffle.Draw, epoch uint64, position int64, err error) error {
	name := e.leaves[draw.Dataset].name
	text := fmt.Sprintf("sample %d at position %d of epoch %d: %v", draw.Sample, position, epoch, err)
	if name != "" {
		text = fmt.Sprintf("source %q: %s", name, text)
	}
	return &SampleError{Source: name, Draw: draw, Epoch: epoch, Position: position,
		Sample: *e.refOf(ctx, &draw, draw.Row), Err: err, text: text}
}

// replace puts a substitute in the place of a bad sample, and reports whether one was good. It
// writes the whole row again, because the fields of a row must come from one sample. It returns
// only errors that no policy covers.
func (p *Pending) replace(r *pixels.Reader, k int) (good bool, err error) {
	bad := p.draws[k]
	for attempt := 1; attempt <= shuffle.MaxAttempts; attempt++ {
		p.draws[k] = p.engine.plan.Substitute(bad, attempt)
		err = nil
		for u := range p.units(k) {
			if err = p.ctx.Err(); err == nil {
				// Not left to complete, so that the error names the substitute.
				err = crash.Call(func() error { return u.do(r) })
			}
			if err != nil {
				break
			}
		}
		if err == nil {
			p.batch.Samples[k] = p.draws[k].Sample
			return true, nil
		}
		if fault.KindOf(err) == 0 {
			return false, err
		}
	}
	p.draws[k] = bad
	return false, nil
}

// do decodes one field of one row, or of one step of it, into its place in the batch.
func (u unit) do(r *pixels.Reader) error {
	draw := &u.p.draws[u.row]
	set := u.p.set(u.row)
	if u.field < 0 {
		for _, c := range u.p.parts {
			if c.fill == nil {
				continue
			}
			if err := c.fill(r, set, draw, u.row); err != nil {
				return err
			}
		}
		return nil
	}
	if err := u.pixels(r, set, draw); err != nil || !set.rasters[u.field].Checked() {
		return err
	}
	return u.fits(set, draw)
}

// fits checks that the pixels of a raster field have no value that its tensor cannot hold.
func (u unit) fits(d *dataset, draw *shuffle.Draw) error {
	pending := u.p
	cv, err := pending.converters(u.row, u.field).Get(&chunk.Index{}, nil)
	if err != nil {
		return err
	}
	err = pending.sink(u.field, u.row, u.step, cv, shuffle.Box{}, true).Fits()
	if err == nil || d.ground != nil {
		return err
	}
	if row := pending.engine.rowOf(draw, u.step); row >= 0 {
		asset, failed := d.table.Asset(pending.ctx, d.column(u.field, u.step), row)
		if failed != nil {
			return failed
		}
		return asset.Fault(err)
	}
	return err
}

// pixels decodes a raster field of one row, or of one step of it, into its place in the batch.
func (u unit) pixels(r *pixels.Reader, d *dataset, draw *shuffle.Draw) error {
	engine, pending := u.p.engine, u.p
	row := engine.rowRead(d, draw, u.field, u.step)
	if row < 0 {
		pending.clearStep(u.field, u.row, u.step)
		return nil
	}
	// The reader serves all datasets in turn, so Share must be reset, otherwise the tiles of the
	// last unit's raster would be used.
	r.Share = pixels.Shared{}
	if d.ground != nil {
		return u.ground(r, d, draw)
	}
	field, column := d.rasters[u.field], d.column(u.field, u.step)
	asset, err := d.table.Asset(pending.ctx, column, row)
	if err != nil {
		return err
	}
	r.Clock.Lap(resources.StageRead) // of the header, if this is the first time
	win, err := engine.windowOf(pending.ctx, d, draw, u.field, row, asset)
	if err != nil {
		return asset.Fault(err)
	}
	key := pixels.TileKey{Set: d.number, Column: column, Row: row}
	switch {
	case d.byTile():
		r.Share = pixels.Shared{Tiles: engine.tiles, Key: key}
	case engine.plans != nil && d.sharesChunks():
		r.Share = pixels.Shared{Tiles: engine.tiles, Key: key, Order: pending.order + int64(u.row)}
	}
	if asset.Parts != nil {
		return u.stack(r, d, field, &asset, win)
	}
	bands, err := d.names.bandsOf(pending.ctx, field, asset)
	if err != nil {
		return err
	}
	in := d.inside(draw, field, win, asset.Index.Height, asset.Index.Width)
	target, err := pending.row(u, asset.Index, bands, win, in)
	if err != nil {
		return asset.Fault(err)
	}
	convs := pending.converters(u.row, u.field)
	err = r.Coloured(field, asset.Index, target, convs, func(to *pixels.Row, convs *pixels.Converters) error {
		to.Bands = bands
		if d.resamples() {
			// The sink is the resampled window, which has the field's size and begins at 0, 0.
			to.Win = shuffle.Box{H: field.H, W: field.W}
			return r.Resampled(pending.ctx, asset, win, to, engine.options.MaxChunkBytes)
		}
		if err := r.Read(pending.ctx, asset, in, bands.Picked, to, to.Masked(convs, in)); err != nil {
			return err
		}
		to.Pad(in) // last, because a chunk also has pixels of the window that are not inside
		return nil
	})
	if field.Coloured() {
		if err == nil && !d.resamples() {
			target.Pad(in) // past the edge there is no colour
		}
		return asset.Fault(err)
	}
	return err
}

// eachPart calls do for every part of a stack that a field takes bands of, with how it lies in the stack.
func eachPart(f *pixels.Raster, a *catalog.Asset,
	do func(k int, part *pixels.Raster, l *pixels.Lay) error) error {
	for place, part := range f.Parts {
		if part == nil {
			continue
		}
		if err := part.Fits(&a.Parts[place]); err != nil {
			return a.Parts[place].Fault(err)
		}
		lay, err := part.NewLay(a, place)
		if err != nil {
			return err
		}
		if err := do(place, part, &lay); err != nil {
			return err
		}
	}
	return nil
}

// stack decodes window win of a stack, part by part, into its place in the batch.
func (u unit) stack(r *pixels.Reader, d *dataset, f *pixels.Raster, a *catalog.Asset, win shuffle.Box) error {
	engine, pending := u.p.engine, u.p
	share := r.Share
	return eachPart(f, a, func(k int, part *pixels.Raster, l *pixels.Lay) error {
		asset := a.Parts[k]
		convs := part.Final
		if pending.layout.rasters[u.field].native {
			convs = part.Wire
		}
		cv, err := convs.Get(asset.Index, &part.PickedBands)
		if err != nil {
			return asset.Fault(err)
		}
		target := pending.sink(u.field, u.row, u.step, cv, win, true)
		target.Field = part
		r.Share = share
		r.Share.Key.Part = k
		switch {
		case !d.resamples() && l.Same:
			return r.Aligned(pending.ctx, asset, l, win, target, target.Masked(convs, l.Inside(win)))
		case l.Whole():
			target.Win = shuffle.Box{H: part.H, W: part.W}
			return r.Resampled(pending.ctx, asset, win, target, engine.options.MaxChunkBytes)
		}
		asset, l, mapping, err := engine.coarserPart(pending.ctx, d, part, a, k, l, win)
		if err != nil {
			return err
		}
		if asset.Raster != nil {
			r.Share.Key.Level = 1 + asset.Overview
		}
		target.Win = shuffle.Box{H: part.H, W: part.W}
		return r.Warped(pending.ctx, asset, l, mapping, win, target, engine.options.MaxChunkBytes)
	})
}

// coarserPart returns the raster that window win of a stack reads for part k, which lies on another grid as l
// describes: the part itself or, if the stack is coarser, the overview of that resolution. It also returns how that
// raster lies, and the mapping to it.
func (e *Engine) coarserPart(ctx context.Context, d *dataset, part *pixels.Raster, a *catalog.Asset, k int,
	l *pixels.Lay, win shuffle.Box) (catalog.Asset, *pixels.Lay, *warp.Mapping, error) {
	asset := a.Parts[k]
	mapping, err := l.Warp(win, part.H, part.W)
	if err != nil {
		return asset, l, mapping, asset.Fault(err)
	}
	overview, err := d.overviewFor(ctx, e, part, spec.AutoOverviews, asset, mapping)
	if overview == nil {
		return asset, l, mapping, err
	}
	stack := *a
	stack.Parts = slices.Clone(a.Parts)
	stack.Parts[k] = *overview
	lay, err := part.NewLay(&stack, k)
	if err != nil {
		return asset, l, mapping, err
	}
	mapping, err = lay.Warp(win, part.H, part.W)
	return *overview, &lay, mapping, overview.Fault(err)
}

// rowOf returns the row of the table for a step of a draw, on the ground the row of its first scene, or -1 for padding.
func (e *Engine) rowOf(draw *shuffle.Draw, step int) int64 {
	set := e.set(draw)
	switch {
	case set.steps == 0:
		return draw.Row
	case set.ground == nil:
		return e.plan.Row(draw, step)
	}
	if steps := set.ground.Steps(e.plan.Place(draw)); step < len(steps) {
		return steps[step].Rows[0]
	}
	return -1
}

// rowRead returns the row of the table whose raster of a field is read for a step of a draw, on the ground the row of
// the first scene that is read, or -1 for padding.
func (e *Engine) rowRead(d *dataset, draw *shuffle.Draw, field, step int) int64 {
	if d.ground == nil {
		row := e.rowOf(draw, step)
		if d.files.padding(field, step, row) {
			return -1
		}
		return row
	}
	f := d.rasters[field]
	if f.Steps == 0 {
		return draw.Row
	}
	if scenes := d.sceneRows(e.plan, draw, f, step); len(scenes) > 0 {
		return scenes[0]
	}
	return -1
}

// windowOf returns the window of a draw, in pixels of a raster field whose asset, of the table's
// row at, is a. All steps of a sequence share the window of the first one. Assets that do not share
// a grid are unsupported.
func (e *Engine) windowOf(ctx context.Context, d *dataset, draw *shuffle.Draw, field int, at int64,
	a catalog.Asset) (shuffle.Box, error) {
	raster, lead := d.rasters[field], d.rasters[0]
	if err := raster.Fits(&a); err != nil {
		return shuffle.Box{}, err
	}
	base := a
	if field > 0 {
		var err error
		if d.files[0] != nil {
			base, err = e.begin(ctx, d, draw)
		} else {
			base, err = d.table.Asset(ctx, lead.TableColumn, at)
		}
		if err != nil {
			return shuffle.Box{}, err
		}
		if !raster.Ratio.Holds(base.Index, a.Index) {
			return shuffle.Box{}, fault.New(fault.Unsupported, "asset", fault.NoOffset,
				"%d by %d pixels do not share a grid with the first field's %d by %d",
				a.Index.Height, a.Index.Width, base.Index.Height, base.Index.Width)
		}
		if err := raster.SameGround(&base, &a); err != nil {
			return shuffle.Box{}, err
		}
	}
	first := base.Index
	// A window drawn in one size has no meaning in another, so every step needs the size of the
	// first.
	if at != draw.Row || field == 0 && d.files[0] != nil {
		begin, err := e.begin(ctx, d, draw)
		if err != nil {
			return shuffle.Box{}, err
		}
		if first.Height != begin.Index.Height || first.Width != begin.Index.Width {
			return shuffle.Box{}, fault.New(fault.Unsupported, "asset", fault.NoOffset,
				"%d by %d pixels; the first step of the sequence has %d by %d",
				first.Height, first.Width, begin.Index.Height, begin.Index.Width)
		}
		if err := lead.SameGround(&begin, &base); err != nil {
			return shuffle.Box{}, err
		}
	}
	w, err := d.window(e.plan, draw, first.Height, first.Width, raster.Pad)
	return raster.Ratio.Scale(w), err
}

// begin returns the asset of the first raster field whose size decides the window of a sequence:
// the asset of the first step, or with the policy "fill" of the first step that opens. With sizes
// measured before the run (GridWindow, TileWindow) the first step must have one: otherwise the
// sequence has no window, and all its steps are bad.
func (e *Engine) begin(ctx context.Context, d *dataset, draw *shuffle.Draw) (catalog.Asset, error) {
	asset, err := d.table.Asset(ctx, d.rasters[0].TableColumn, draw.Row)
	if d.sizes.available() && d.sizes.of(draw.Row).Height == 0 {
		return asset, err
	}
	fills := e.spec.BadSamples == spec.BadFill
	for step := 0; step < d.span() && err != nil && fault.KindOf(err) != 0 && fills; step++ {
		if row := e.rowOf(draw, step); step < d.rasters[0].Steps && !d.files.padding(0, step, row) {
			asset, err = d.table.Asset(ctx, d.column(0, step), row)
		}
	}
	return asset, err
}

// row returns the sink for a unit of a raster field, which has some bands of the asset and shows the pixels of box in
// of its window. It writes the mask only if the spec asks for it, if pixels may be missing, or if the bad sample before
// this substitute may have written it.
func (p *Pending) row(u unit, x *chunk.Index, bands *pixels.PickedBands, win shuffle.Box,
	in chunk.Box) (*pixels.Row, error) {
	layout, convs := p.layout.rasters[u.field], p.converters(u.row, u.field)
	if p.set(u.row).rasters[u.field].Coloured() {
		x = &chunk.Index{Height: x.Height, Width: x.Width} // nodata is looked for in the colours
	}
	convert, err := convs.Get(x, bands)
	if err != nil {
		return nil, err
	}
	whole := in.Y1-in.Y0 == win.H && in.X1-in.X0 == win.W
	mask := !layout.native || !whole || convs.Miss(x) || p.draws[u.row].Attempt > 0
	return p.sink(u.field, u.row, u.step, convert, win, mask), nil
}

// set returns the dataset of a row. For padding it is the first one of the group.
func (p *Pending) set(k int) *dataset {
	if p.batch.Positions[k] < 0 {
		return p.group.lead()
	}
	return p.engine.set(&p.draws[k])
}

// converters returns the casts from a field's stored pixels to the dtype of its tensor in this
// batch.
func (p *Pending) converters(k, field int) *pixels.Converters {
	raster := p.set(k).rasters[field].Tensor()
	if p.layout.rasters[field].native {
		return raster.Wire
	}
	return raster.Final
}

// sink returns the writer of one step of row k of a field. With masked it also writes the mask, if
// the tensor has one.
func (p *Pending) sink(field, k, step int, cv *einops.Converter, win shuffle.Box, masked bool) *pixels.Row {
	layout := p.layout.rasters[field]
	dst := einops.Target{Data: p.buf[layout.data:layout.end]}
	if layout.mask >= 0 && masked {
		dst.Mask = p.mask(field)
	}
	return &pixels.Row{Field: p.set(k).rasters[field].Tensor(), Plan: layout.plan, Dst: dst, Cv: cv, N: k, T: step,
		Win: win, Turn: p.draws[k].Transform}
}

// mask returns the mask of a field. The mask of a native tensor is set to ones before its first
// use, because rows without missing pixels do not write it.
func (p *Pending) mask(field int) []byte {
	layout := p.layout.rasters[field]
	mask := p.buf[layout.mask : layout.mask+layout.plan.Len()]
	if layout.native {
		p.masks[field].Do(func() {
			for i := range mask {
				mask[i] = 1
			}
			p.masked[field].Store(true)
		})
	}
	return mask
}

// clearRow fills a row of padding or of a bad sample.
func (p *Pending) clearRow(k int) {
	for i, r := range p.group.lead().rasters {
		for step := range max(r.Steps, 1) {
			p.clearStep(i, k, step)
		}
	}
	for _, c := range p.parts {
		if c.clear != nil {
			c.clear(k)
		}
	}
}

// clearStep fills one step of a raster field of a row.
func (p *Pending) clearStep(field, k, step int) {
	cv, err := p.converters(k, field).Get(&chunk.Index{}, nil)
	if err != nil {
		panic("loader: a cast without nodata does not exist: " + err.Error()) // it was made when the field was compiled
	}
	p.sink(field, k, step, cv, shuffle.Box{}, true).Clear()
}

// tensors adds the tensors to the filled batch, in the order of the spec's fields. It fails with
// kind limit if what the layout cannot count is over the batch memory.
func (p *Pending) tensors() error {
	engine, batch := p.engine, p.batch
	size := int64(0)
	for _, part := range p.parts {
		if part.size != nil {
			size += part.size()
		}
	}
	if size > engine.options.MemoryBytes {
		return fault.New(fault.Limit, "batch", fault.NoOffset, "values of %d bytes, over the %d bytes of batch memory",
			size, engine.options.MemoryBytes)
	}
	add := func(part column) {
		for _, m := range part.members() {
			batch.Tensors = append(batch.Tensors, m.Tensor)
		}
	}
	p.group.inOrder(engine, func(i int) { batch.Tensors = append(batch.Tensors, p.raster(i)...) },
		func(i int) { add(p.parts[i]) })
	for _, part := range p.parts[len(p.group.lead().values):] {
		add(part)
	}
	return nil
}

// raster returns the tensor of a raster field, and its validity if it has one.
func (p *Pending) raster(i int) []batch.Tensor {
	field, layout := p.group.lead().rasters[i].Tensor(), p.layout.rasters[i]
	tensor := batch.Tensor{Name: field.Name, DType: layout.dtype, Axes: layout.plan.Axes,
		Shape: pixels.Int64s(layout.plan.Shape), Data: p.buf[layout.data:layout.end:layout.end]}
	if layout.native {
		tensor.Convert = convertOf(field, layout.plan)
		if p.masked[i].Load() {
			tensor.Convert.Mask = p.mask(i)
		}
		return []batch.Tensor{tensor}
	}
	if field.Validity == "" {
		return []batch.Tensor{tensor}
	}
	validity := tensor
	validity.Name, validity.DType, validity.Data = field.Validity, chunk.Uint8, p.mask(i)
	return []batch.Tensor{tensor, validity}
}

// convertOf returns the arithmetic that a native tensor leaves to the receiver.
func convertOf(r *pixels.Raster, p *einops.Plan) *batch.Convert {
	base := r.Final.Base
	convert := &batch.Convert{To: r.To, Scale: r.Scale, Offset: r.Offset, BandAxis: -1, Clip: base.Clip, Lo: base.Lo,
		Hi: base.Hi, Fill: r.FillValue}
	if len(r.Scale) > 1 {
		convert.BandAxis = p.BandAxis()
	}
	return convert
}

// needs returns the chunks that the windows of a sample need and may share.
func (e *Engine) needs(ctx context.Context, draw *shuffle.Draw) (out []pixels.Need, err error) {
	owner := e.set(draw)
	err = crash.Call(func() error {
		for i, step := range owner.images() {
			row := e.rowRead(owner, draw, i, step)
			if row < 0 {
				continue
			}
			read := dryrun.Asset{Field: owner.rasters[i].Name, Step: step, Row: row}
			assets, err := e.explainWindow(ctx, owner, draw, i, read)
			if err != nil {
				return err
			}
			out = append(out, owner.needs(assets)...)
		}
		return nil
	})
	return out, err
}

// explainWindow adds the reads of a window of an asset; of a stack, the reads of each part.
func (e *Engine) explainWindow(ctx context.Context, d *dataset, draw *shuffle.Draw, field int,
	p dryrun.Asset) ([]dryrun.Asset, error) {
	raster := d.rasters[field]
	asset, err := d.table.Asset(ctx, d.column(field, p.Step), p.Row)
	if err != nil {
		return nil, err
	}
	win, err := e.windowOf(ctx, d, draw, field, p.Row, asset)
	if err != nil {
		return nil, asset.Fault(err)
	}
	p.URI, p.Size = asset.URI, shuffle.Box{H: asset.Index.Height, W: asset.Index.Width}
	p.Window = win
	if asset.Parts != nil {
		return e.explainStack(ctx, d, field, &asset, p)
	}
	inside := d.inside(draw, raster, win, asset.Index.Height, asset.Index.Width)
	picked, err := d.names.bandsOf(ctx, raster, asset)
	if err != nil {
		return nil, err
	}
	err = e.explainReads(ctx, d, asset, picked.Picked, raster.Final.Nodata, inside, &p)
	return []dryrun.Asset{p}, err
}

// explainStack adds the reads of the parts of a stack for a window.
func (e *Engine) explainStack(ctx context.Context, d *dataset, field int, a *catalog.Asset,
	p dryrun.Asset) (out []dryrun.Asset, _ error) {
	f, names := d.rasters[field], d.rasters[field].Field.Parts()
	err := eachPart(f, a, func(k int, part *pixels.Raster, l *pixels.Lay) error {
		planned, asset := p, a.Parts[k]
		planned.Part, planned.Stack = names[k].Column+names[k].Pattern, k
		inside := l.Inside(p.Window)
		if planned.Resampled = !l.Same || d.resamples(); planned.Resampled && !l.Whole() {
			overview, _, mapping, err := e.coarserPart(ctx, d, part, a, k, l, p.Window)
			if err != nil {
				return err
			}
			if asset = overview; asset.Raster != nil {
				planned.Overview = &asset.Overview
			}
			inside = part.Source(mapping)
		}
		planned.URI, planned.Size = asset.URI, shuffle.Box{H: asset.Index.Height, W: asset.Index.Width}
		planned.Window = shuffle.Box{
			Y: inside.Y0, X: inside.X0, H: max(inside.Y1-inside.Y0, 0), W: max(inside.X1-inside.X0, 0),
		}
		if planned.Window.H > 0 && planned.Window.W > 0 {
			if err := e.explainReads(ctx, d, asset, part.Picked, part.Final.Nodata, inside, &planned); err != nil {
				return err
			}
		}
		out = append(out, planned)
		return nil
	})
	return out, err
}

// explainReads adds the reads of box in of an asset, and of its mask if the field uses it, by a reader that has read
// nothing yet.
func (e *Engine) explainReads(ctx context.Context, d *dataset, a catalog.Asset, bands []int, masked bool, in chunk.Box,
	p *dryrun.Asset) error {
	file, err := e.pixelFile(ctx, a, p)
	if err != nil {
		return err
	}
	gap, headers, loose := source.Gap(file), source.Held(file), false
	// The head of a chip is in memory when its pixels are read, for that comes next. A later window may come too late,
	// and the heads of the members of a container displace each other.
	if len(headers) > 0 && (d.sampler.Kind != spec.WholeChip || a.Member != "") {
		headers, loose = nil, true
	}
	var mask pixels.Sink
	if masked {
		mask = pixels.Nowhere{}
	}
	if p.Remote = a.Bytes == nil && a.Remote(); p.Remote {
		p.Gap = gap
	}
	p.Kept = p.Remote && (a.Size == 0 || a.ETag != "")
	p.Known = p.Kept && a.Size > 0 && a.Index.Blocks == nil
	p.Again = func(ctx context.Context, r *pixels.DryReader) error {
		r.Gap, r.Headers, r.Measured = gap, headers, p.Remote && p.Object == nil
		r.Loose = r.Loose || loose
		return r.Read(ctx, a, in, bands, pixels.Nowhere{}, mask)
	}
	reader := pixels.NewDryReader(e.options)
	if d.byTile() && e.tiles != nil { // tiles are shared, and so decoded whole
		reader.Share.Tiles = pixels.NewTileCounter(math.MaxInt64)
	}
	err = p.Again(ctx, reader)
	p.Runs, p.Chunks = reader.Runs, reader.Chunks
	return err
}

// pixelFile opens the file of an asset as a run does before it reads pixels, and notes in p where it is in a cache. It
// returns nil for local files and arrays. If a catalog or the reader of the header knows the size of the file, it costs
// no request.
func (e *Engine) pixelFile(ctx context.Context, a catalog.Asset, p *dryrun.Asset) (source.Reader, error) {
	switch {
	case a.Bytes != nil:
		return a.Reader(), nil
	case a.Index.Blocks != nil || !a.Remote():
		return nil, nil
	}
	file, err := source.OpenKnown(ctx, e.options.Opener, a.URI, a.Known())
	if err != nil {
		return nil, err
	}
	p.Object, p.Start = source.Place(file)
	return file, file.Close()
}

// SampleError is the error of a ticket that ends because of one sample: by the policy "error", or
// because no policy covers the error.
type SampleError struct {
	Source   string // the name of the sample's source; empty if there is one source
	Draw     shuffle.Draw
	Epoch    uint64
	Position int64
	Sample   batch.SampleRef
	Err      error

	text string
}

// Error returns the error with the sample that it is about.
func (e *SampleError) Error() string { return e.text }

// Unwrap returns Err.
func (e *SampleError) Unwrap() error { return e.Err }
