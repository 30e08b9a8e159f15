package loader

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/chaski-eo/chaski/catalog"
	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/shuffle"
)

// ErrClosed is the error of tickets that an engine had not finished when it was closed.
var ErrClosed = errors.New("loader: the engine is closed")

// queue holds the tickets that wait for memory, first come first served.
type queue struct {
	mu      sync.Mutex
	waiting []*Pending
	closed  bool
	more    chan struct{} // has one element when waiting has grown
}

// Pending is a ticket being worked on. Wait or Cancel must be called; after Wait has returned a batch,
// Cancel must not be.
type Pending struct {
	engine *Engine
	ticket shuffle.Ticket
	order  shuffle.Order
	native bool
	ctx    context.Context
	cancel context.CancelFunc

	layout *layout
	memory Buffer
	buf    []byte // of memory
	batch  *Batch
	values [][]catalog.Value // by value field, then row
	masks  []sync.Once       // by raster field: the mask was set to ones
	masked []atomic.Bool     // by raster field: the mask has zeros
	errs   []error           // by row
	left   atomic.Int64      // units not done
	done   chan struct{}
	err    error

	state atomic.Int32
}

// States of a Pending: whose the buffer is once the work is done.
const (
	working int32 = iota
	finished
	abandoned
)

// unit is the smallest piece of work: one field of one row. Field -1 is the row's values.
type unit struct {
	p          *Pending
	row, field int
}

// Start asks for the rows of a ticket. It never blocks: tickets are worked on in the order in which
// they come, as workers and memory allow. With native, tensors that are smaller so come in their
// native dtype with Tensor.Convert set.
func (e *Engine) Start(ctx context.Context, t shuffle.Ticket, native bool) *Pending {
	p := &Pending{engine: e, ticket: t, native: native, done: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(ctx)
	if err := e.check(t); err != nil {
		p.finish(err)
		return p
	}
	p.order = shuffle.NewOrder(e.spec.Seed, t.Epoch, e.samples, e.spec.Shuffle)
	if !e.queue.put(p) {
		p.finish(ErrClosed)
	}
	return p
}

// put appends a ticket, and reports whether the queue is still served.
func (q *queue) put(p *Pending) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.waiting = append(q.waiting, p)
	select {
	case q.more <- struct{}{}:
	default:
	}
	return true
}

func (e *Engine) check(t shuffle.Ticket) error {
	switch {
	case t.First < 0 || t.First > e.samples:
		return fault.New(fault.NotFound, "ticket", fault.NoOffset, "position %d of an epoch of %d", t.First, e.samples)
	case t.Count < 1 || t.RowStride < 1 || t.RowStart < 0 || t.RowStart >= t.RowStride:
		return fault.New(fault.Unsupported, "ticket", fault.NoOffset, "%d positions, rows from %d by %d", t.Count, t.RowStart, t.RowStride)
	case t.Count > e.spec.BatchSize:
		return fault.New(fault.Limit, "ticket", fault.NoOffset, "%d positions, at most a global batch of %d", t.Count, e.spec.BatchSize)
	}
	return nil
}

// Wait returns the batch, or the error of the first row that has one. If ctx ends first the ticket
// is cancelled.
func (p *Pending) Wait(ctx context.Context) (*Batch, error) {
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

// Cancel gives the ticket up; its memory comes back as soon as no worker touches it.
func (p *Pending) Cancel() {
	p.cancel()
	if !p.state.CompareAndSwap(working, abandoned) && p.state.CompareAndSwap(finished, abandoned) && p.batch != nil {
		p.batch.Release()
	}
}

// finish ends the ticket, with its batch or with an error.
func (p *Pending) finish(err error) {
	p.cancel()
	if err != nil && p.memory != nil {
		p.engine.memory.give(p.memory, true)
		p.memory, p.buf, p.batch = nil, nil, nil
	}
	p.err = err
	if !p.state.CompareAndSwap(working, finished) && p.batch != nil {
		p.batch.Release()
	}
	close(p.done)
}

// start runs the workers and the dispatcher until Close.
func (e *Engine) start() {
	ctx, stop := context.WithCancel(context.Background())
	e.stop = stop
	e.queue.more = make(chan struct{}, 1)
	e.done.Go(func() { e.dispatch(ctx) })
	for range e.options.Workers {
		e.done.Go(func() { e.work(ctx) })
	}
}

// dispatch gives memory to the tickets in their order and hands their units to the workers.
func (e *Engine) dispatch(ctx context.Context) {
	defer close(e.units)
	for {
		p := e.queue.take(ctx)
		if p == nil {
			e.queue.failAll()
			return
		}
		if err := p.prepare(ctx); err != nil {
			p.finish(err)
			continue
		}
		p.hand()
	}
}

// take returns the next ticket, or nil when ctx ends.
func (q *queue) take(ctx context.Context) *Pending {
	for {
		if ctx.Err() != nil {
			return nil
		}
		q.mu.Lock()
		if len(q.waiting) > 0 {
			p := q.waiting[0]
			q.waiting = slices.Delete(q.waiting, 0, 1)
			q.mu.Unlock()
			return p
		}
		q.mu.Unlock()
		select {
		case <-q.more:
		case <-ctx.Done():
		}
	}
}

func (q *queue) failAll() {
	q.mu.Lock()
	waiting := q.waiting
	q.waiting, q.closed = nil, true
	q.mu.Unlock()
	for _, p := range waiting {
		p.finish(ErrClosed)
	}
}

// prepare waits for the ticket's memory and lays the batch out in it.
func (p *Pending) prepare(closing context.Context) error {
	e := p.engine
	rows := p.ticket.Rows()
	var err error
	if p.layout, err = e.layout(layoutKey{rows, p.native}); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	defer context.AfterFunc(closing, cancel)()
	if p.memory, err = e.memory.take(ctx, max(p.layout.bytes, 1)); err != nil {
		if closing.Err() != nil {
			return ErrClosed
		}
		return err
	}
	memory := p.memory
	p.buf = memory.Bytes()
	p.batch = &Batch{
		Epoch: p.ticket.Epoch, First: p.ticket.First, Rows: rows,
		Valid: make([]bool, rows), Positions: make([]int64, rows), Samples: make([]int64, rows),
	}
	p.batch.memory, p.batch.release = memory, func(keep bool) { e.memory.give(memory, keep) }
	for k := range rows {
		p.batch.Positions[k], p.batch.Samples[k] = p.ticket.Position(k, e.samples), -1
		if pos := p.batch.Positions[k]; pos >= 0 {
			p.batch.Samples[k], p.batch.Valid[k] = p.order.At(pos), true
		}
	}
	p.errs = make([]error, rows)
	p.masks, p.masked = make([]sync.Once, len(e.rasters)), make([]atomic.Bool, len(e.rasters))
	p.values = make([][]catalog.Value, len(e.values))
	for i := range p.values {
		p.values[i] = make([]catalog.Value, rows)
	}
	return nil
}

// hand gives the units of the ticket to the workers, row by row. Rows of padding are filled here.
func (p *Pending) hand() {
	e := p.engine
	perRow := len(e.rasters)
	if len(e.values) > 0 {
		perRow++
	}
	p.left.Store(1) // held until all are handed out
	for k, pos := range p.batch.Positions {
		if pos < 0 {
			p.clearRow(k)
			continue
		}
		p.left.Add(int64(perRow))
		for f := range e.rasters {
			e.units <- unit{p, k, f}
		}
		if len(e.values) > 0 {
			e.units <- unit{p, k, -1}
		}
	}
	p.complete()
}

// work does units until the dispatcher stops.
func (e *Engine) work(ctx context.Context) {
	r := newAssetReader(e.options)
	r.time(e.options.Stages.Clock())
	defer r.clock.Stop()
	for u := range e.units {
		r.clock.Lap(StageWait)
		err := u.p.ctx.Err()
		if ctx.Err() != nil {
			err = ErrClosed
		}
		if err == nil {
			err = u.do(r)
		}
		if err != nil {
			u.p.fail(u.row, err)
		}
		u.p.complete()
		r.clock.Lap(StageOther)
	}
	r.clock.Lap(StageWait)
}

// failMu guards errs of all tickets: errors are rare.
var failMu sync.Mutex

func (p *Pending) fail(k int, err error) {
	failMu.Lock()
	defer failMu.Unlock()
	if p.errs[k] == nil || p.errs[k].Error() > err.Error() { // the same one, whichever field was first
		p.errs[k] = err
	}
}

// complete counts one unit as done. The last one finishes the batch.
func (p *Pending) complete() {
	if p.left.Add(-1) > 0 {
		return
	}
	if err := p.settle(); err != nil {
		p.finish(err)
		return
	}
	p.engine.options.Stages.count(p.batch.Valid)
	p.finish(p.tensors())
}

// settle applies the bad-sample policy.
func (p *Pending) settle() error {
	for k, err := range p.errs {
		if err == nil {
			continue
		}
		skip := p.engine.spec.BadSamples == BadSkip && fault.KindOf(err) != 0
		if !skip {
			return fmt.Errorf("sample %d at position %d of epoch %d: %w", p.batch.Samples[k], p.batch.Positions[k], p.ticket.Epoch, err)
		}
		p.batch.Valid[k] = false
		p.batch.Bad = append(p.batch.Bad, Bad{Row: k, Position: p.batch.Positions[k], Err: err})
		p.clearRow(k)
	}
	return nil
}

// do decodes one field of one row into its place.
func (u unit) do(r *assetReader) error {
	e, p := u.p.engine, u.p
	sample := p.batch.Samples[u.row]
	asset := sample / int64(e.spec.Sampler.PerAsset)
	if u.field < 0 {
		return u.values(asset)
	}
	f := e.rasters[u.field]
	a, err := e.table.Asset(p.ctx, f.column, asset)
	if err != nil {
		return err
	}
	win, err := u.window(f, a, asset)
	if err != nil {
		return fault.WithFile(err, a.URI)
	}
	to, err := p.row(u.field, u.row, a.Index, win)
	if err != nil {
		return fault.WithFile(err, a.URI)
	}
	to.pad(a.Index.Height, a.Index.Width)
	return r.read(p.ctx, a, win.inside(a.Index.Height, a.Index.Width), f.bands, to)
}

// window returns the row's window in the field's own pixels.
func (u unit) window(f *rasterField, a catalog.Asset, asset int64) (window, error) {
	e, p := u.p.engine, u.p
	if err := f.fits(a.Index); err != nil {
		return window{}, err
	}
	first, lead := a.Index, e.rasters[0]
	if u.field > 0 {
		fa, err := e.table.Asset(p.ctx, lead.column, asset)
		if err != nil {
			return window{}, err
		}
		first = fa.Index
		if !f.ratio.holds(first, a.Index) {
			return window{}, fault.New(fault.Unsupported, "asset", fault.NoOffset,
				"%d by %d pixels do not share a grid with the first field's %d by %d", a.Index.Height, a.Index.Width, first.Height, first.Width)
		}
	}
	w, err := e.sampler.window(p.ticket.Epoch, p.batch.Positions[u.row], first.Height, first.Width, f.Pad)
	return f.ratio.scale(w), err
}

// row returns the sink for a row of a raster field. The mask is written only where it is asked for
// or where a sample may be missing.
func (p *Pending) row(field, k int, x *chunk.Index, win window) (*row, error) {
	l, convs := p.layout.rasters[field], p.converters(field)
	cv, err := convs.get(x)
	if err != nil {
		return nil, err
	}
	in := win.inside(x.Height, x.Width)
	whole := in.Y1-in.Y0 == win.h && in.X1-in.X0 == win.w
	return p.sink(field, k, cv, win, !l.native || !whole || convs.key(x).has), nil
}

// converters returns the casts of a field to what its tensor holds in this batch.
func (p *Pending) converters(field int) *converters {
	if p.layout.rasters[field].native {
		return &p.engine.rasters[field].wire
	}
	return &p.engine.rasters[field].final
}

// sink returns what writes row k of a field, and with masked also the row's mask, if there is one.
func (p *Pending) sink(field, k int, cv *einops.Converter, win window, masked bool) *row {
	l := p.layout.rasters[field]
	dst := einops.Target{Data: p.buf[l.data:l.end]}
	if l.mask >= 0 && masked {
		dst.Mask = p.mask(field)
	}
	return &row{field: p.engine.rasters[field], plan: l.plan, dst: dst, cv: cv, n: k, win: win}
}

// mask returns the mask of a field. That of a native tensor is all ones before its first use, since
// rows that miss nothing do not write it.
func (p *Pending) mask(field int) []byte {
	l := p.layout.rasters[field]
	m := p.buf[l.mask : l.mask+l.plan.Len()]
	if l.native {
		p.masks[field].Do(func() {
			for i := range m {
				m[i] = 1
			}
			p.masked[field].Store(true)
		})
	}
	return m
}

// clearRow fills all rasters of a row: padding, or a sample that was skipped.
func (p *Pending) clearRow(k int) {
	for i := range p.engine.rasters {
		cv, err := p.converters(i).get(&chunk.Index{})
		if err != nil {
			panic("loader: a cast without nodata does not exist: " + err.Error()) // it was made when the field was compiled
		}
		p.sink(i, k, cv, window{}, true).clear()
	}
}

func (u unit) values(asset int64) error {
	e, p := u.p.engine, u.p
	for i, v := range e.values {
		val, err := e.table.Value(p.ctx, v.column, asset)
		if err == nil {
			err = v.check(val)
		}
		if err != nil {
			return err
		}
		p.values[i][u.row] = val
	}
	return nil
}

// tensors names the parts of the filled memory, in the order of the spec's fields.
func (p *Pending) tensors() error {
	e, b := p.engine, p.batch
	text := int64(0)
	e.inOrder(func(i int) {
		b.Tensors = append(b.Tensors, p.raster(i)...)
	}, func(i int) {
		t := e.values[i].tensor(p.values[i], b.Valid)
		text += int64(len(t.Data))
		b.Tensors = append(b.Tensors, t)
	})
	if text > e.options.MemoryBytes {
		return fault.New(fault.Limit, "batch", fault.NoOffset, "values of %d bytes, over the %d bytes of batch memory", text, e.options.MemoryBytes)
	}
	return nil
}

func (p *Pending) raster(i int) []Tensor {
	f, l := p.engine.rasters[i], p.layout.rasters[i]
	t := Tensor{Name: f.Name, DType: l.dtype, Axes: l.plan.Axes, Shape: int64s(l.plan.Shape), Data: p.buf[l.data:l.end:l.end]}
	if l.native {
		t.Convert = f.convert(l.plan)
		if p.masked[i].Load() {
			t.Convert.Mask = p.mask(i)
		}
		return []Tensor{t}
	}
	if f.Validity == "" {
		return []Tensor{t}
	}
	m := t
	m.Name, m.DType, m.Data = f.Validity, chunk.Uint8, p.mask(i)
	return []Tensor{t, m}
}

// convert tells the receiver the arithmetic that is left to it.
func (r *rasterField) convert(p *einops.Plan) *Convert {
	base := r.final.base
	c := &Convert{To: r.to, Scale: r.scale, Offset: r.offset, BandAxis: -1, Clip: base.Clip, Lo: base.Lo, Hi: base.Hi, Fill: r.fill}
	if len(r.scale) > 1 {
		c.BandAxis = p.BandAxis()
	}
	return c
}
