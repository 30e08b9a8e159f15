package loader

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
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
	native bool
	ctx    context.Context
	cancel context.CancelFunc

	layout *layout
	memory Buffer
	buf    []byte // of memory
	batch  *Batch
	draws  []shuffle.Draw    // by row: what stands there
	values [][]catalog.Value // by value field, then row and step
	points []pointRows       // by field of points
	window []byte            // with Spec.Windows: the tensor WindowMember
	masks  []sync.Once       // by raster field: the mask was set to ones
	masked []atomic.Bool     // by raster field: the mask has zeros
	errs   []rowErrors       // by row
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

// unit is the smallest piece of work: one field of one row, or of one step of it where samples are
// sequences. Field -1 is the row's values, of all steps, and its points.
type unit struct {
	p                *Pending
	row, field, step int
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
	for range e.fetchers() {
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
	p.draws = make([]shuffle.Draw, rows)
	for k := range rows {
		p.batch.Positions[k], p.batch.Samples[k] = p.ticket.Position(k, e.samples), -1
		if pos := p.batch.Positions[k]; pos >= 0 {
			p.draws[k] = e.plan.At(p.ticket.Epoch, pos)
			p.batch.Samples[k], p.batch.Valid[k] = p.draws[k].Sample, true
		}
	}
	p.errs = make([]rowErrors, rows)
	p.masks, p.masked = make([]sync.Once, len(e.rasters)), make([]atomic.Bool, len(e.rasters))
	for _, f := range e.sets[0].points {
		p.points = append(p.points, f.make(rows))
	}
	if e.spec.Windows {
		p.window = bytes.Repeat([]byte{0xff}, rows*windowBytes) // -1
	}
	p.values = make([][]catalog.Value, len(e.values))
	for i := range p.values {
		p.values[i] = make([]catalog.Value, rows*max(e.sets[0].steps, 1))
	}
	return nil
}

// hand gives the units of the ticket to the workers, row by row. Rows of padding are filled here.
func (p *Pending) hand() {
	p.left.Store(1) // held until all are handed out
	for k, pos := range p.batch.Positions {
		if pos < 0 {
			p.clearRow(k)
			continue
		}
		p.left.Add(int64(p.engine.perRow))
		p.units(k, func(u unit) bool {
			p.engine.units <- u
			return true
		})
	}
	p.complete(nil)
}

// units visits the units of a row until visit says no.
func (p *Pending) units(k int, visit func(unit) bool) {
	e := p.engine
	for step := range max(e.sets[0].steps, 1) {
		for f := range e.rasters {
			if !visit(unit{p, k, f, step}) {
				return
			}
		}
	}
	if e.hasMetadataUnit() {
		visit(unit{p, k, -1, 0})
	}
}

// work does units until the dispatcher stops.
func (e *Engine) work(ctx context.Context) {
	r := pixels.NewReader(e.options)
	r.SetClock(e.options.Stages.Clock())
	defer r.Clock.Stop()
	for u := range e.units {
		r.Clock.Lap(resources.StageWait)
		err := u.p.ctx.Err()
		if ctx.Err() != nil {
			err = ErrClosed
		}
		if err == nil {
			err = u.do(r)
		}
		if err != nil {
			u.p.fail(u, err)
		}
		u.p.complete(r)
		r.Clock.Lap(resources.StageOther)
	}
	r.Clock.Lap(resources.StageWait)
}

// failMu guards errs of all tickets: errors are rare.
var failMu sync.Mutex

// rowErrors are what is wrong with a row.
type rowErrors struct {
	all   error   // with all of it; what weighs most
	steps []error // of a sequence: with a step alone; nil where there is no such thing
}

// worst returns what weighs most.
func (r *rowErrors) worst() error {
	err := r.all
	for _, e := range r.steps {
		if e != nil && outranks(e, err) {
			err = e
		}
	}
	return err
}

// step returns what is wrong with a step.
func (r *rowErrors) step(i int) error {
	if r.all != nil || len(r.steps) == 0 {
		return r.all
	}
	return r.steps[i]
}

func (p *Pending) fail(u unit, err error) {
	failMu.Lock()
	defer failMu.Unlock()
	r := &p.errs[u.row]
	at := &r.all
	if n := p.engine.sets[0].steps; n > 0 && u.field >= 0 {
		if r.steps == nil {
			r.steps = make([]error, n)
		}
		at = &r.steps[u.step]
	}
	if outranks(err, *at) {
		*at = err
	}
}

// outranks reports whether of two errors of a row the first is the one to tell, whichever came first: one that is
// not the sample's fault, which no policy covers, and else that of the lesser text.
func outranks(err, other error) bool {
	if other == nil {
		return true
	}
	if system := fault.KindOf(err) == 0; system != (fault.KindOf(other) == 0) {
		return system
	}
	return err.Error() < other.Error()
}

// complete counts one unit as done. The last one finishes the batch, with the worker's reader or, where
// it is not a worker, nil.
func (p *Pending) complete(r *pixels.Reader) {
	if p.left.Add(-1) > 0 {
		return
	}
	if err := p.settle(r); err != nil {
		p.finish(err)
		return
	}
	p.engine.options.Stages.Count(p.batch.Valid)
	p.finish(p.tensors())
}

// settle applies the bad-sample policy.
func (p *Pending) settle(r *pixels.Reader) error {
	policy := p.engine.spec.BadSamples
	for k := range p.errs {
		err := p.errs[k].worst()
		if err == nil {
			continue
		}
		if policy == BadError || fault.KindOf(err) == 0 {
			return p.atRow(k, err)
		}
		if policy == BadFill && p.errs[k].all == nil && p.errs[k].steps != nil {
			p.fillSteps(k)
			continue
		}
		bad := Bad{Row: k, Position: p.batch.Positions[k], Err: err, Source: p.set(k).name, Sample: p.ref(k)}
		p.batch.Bad = append(p.batch.Bad, bad)
		if policy == BadReplace {
			if r == nil {
				// The dispatcher finishes a batch whose workers were faster than it. It needs a clock of its own,
				// because otherwise the chunks of the substitute would be missing from Stages.
				r = pixels.NewReader(p.engine.options)
				r.SetClock(p.engine.options.Stages.Clock())
				defer r.Clock.Stop()
			}
			good, err := p.replace(r, k)
			if err != nil {
				return p.atRow(k, err)
			}
			if good {
				p.batch.Bad[len(p.batch.Bad)-1].Instead = p.ref(k)
				continue
			}
		}
		p.errs[k].all = err // of all steps
		p.batch.Valid[k] = policy == BadFill
		p.clearRow(k)
		p.clearValues(k)
		p.clearPoints(k)
	}
	return nil
}

// fillSteps makes the bad steps of a row missing, in all fields; the others stay.
func (p *Pending) fillSteps(k int) {
	steps := p.errs[k].steps
	for step, err := range steps {
		if err == nil {
			continue
		}
		at := p.engine.rowOf(&p.draws[k], step)
		p.batch.Bad = append(p.batch.Bad, Bad{Row: k, Position: p.batch.Positions[k], Err: err, Source: p.set(k).name, Sample: p.refOf(k, at)})
		for i := range p.engine.rasters {
			p.clearStep(i, k, step)
		}
		for _, v := range p.values {
			v[k*len(steps)+step] = catalog.Value{Null: true}
		}
	}
}

// maxID bounds what a sample is called in a batch, in bytes.
const maxID = 4096

// ref says which sample stands in a row.
func (p *Pending) ref(k int) *SampleRef { return p.refOf(k, p.draws[k].Row) }

// refOf is ref, by a row of the table that is one of the sample's.
func (p *Pending) refOf(k int, row int64) *SampleRef {
	d := &p.draws[k]
	id, err := p.engine.ID(p.ctx, d.Dataset, row)
	if err != nil {
		id = "" // the row says which it is
	}
	return &SampleRef{d.Sample, row, id[:min(len(id), maxID)]}
}

// atRow says of which sample an error is: where a substitute could not be had, of that.
func (p *Pending) atRow(k int, err error) error {
	d := p.draws[k]
	return &SampleError{
		Source: p.engine.leaves[d.Dataset].name, Draw: d, Epoch: p.ticket.Epoch, Position: p.batch.Positions[k], Sample: *p.ref(k), Err: err,
		text: fmt.Sprintf("%ssample %d at position %d of epoch %d: %v", p.engine.sourceOf(&d), d.Sample, p.batch.Positions[k], p.ticket.Epoch, err),
	}
}

// sourceOf returns "source NAME: " where there are several.
func (e *Engine) sourceOf(d *shuffle.Draw) string {
	if name := e.leaves[d.Dataset].name; name != "" {
		return fmt.Sprintf("source %q: ", name)
	}
	return ""
}

// replace puts a substitute in the place of a bad sample, and reports whether one was good. All of the row
// is written again. It returns errors that no policy covers.
func (p *Pending) replace(r *pixels.Reader, k int) (good bool, err error) {
	bad := p.draws[k]
	for attempt := 1; attempt <= shuffle.MaxAttempts; attempt++ {
		p.draws[k] = p.engine.plan.Substitute(bad, attempt)
		err = nil
		p.units(k, func(u unit) bool {
			if err = p.ctx.Err(); err == nil {
				err = u.do(r)
			}
			return err == nil
		})
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

// do decodes one field of one row, or of one step of it, into its place.
func (u unit) do(r *pixels.Reader) error {
	e, p := u.p.engine, u.p
	draw := &p.draws[u.row]
	d := e.leaves[draw.Dataset]
	if u.field < 0 {
		if err := u.values(d, draw); err != nil {
			return err
		}
		if err := u.window(d, draw); err != nil {
			return err
		}
		return u.points(r, d, draw)
	}
	at := e.rowOf(draw, u.step)
	if at < 0 { // padding of a sequence
		p.clearStep(u.field, u.row, u.step)
		return nil
	}
	f := d.rasters[u.field]
	a, err := d.table.Asset(p.ctx, f.TableColumn, at)
	if err != nil {
		return err
	}
	win, err := e.windowOf(p.ctx, d, draw, u.field, at, a)
	if err != nil {
		return a.Fault(err)
	}
	to, err := p.row(u, a.Index, win)
	if err != nil {
		return a.Fault(err)
	}
	if to.Bands, err = d.bandsOf(p.ctx, f, a); err != nil {
		return err
	}
	r.Share = pixels.Shared{}
	if d.sampler.Kind == TileWindow {
		r.Share = pixels.Shared{Tiles: e.tiles, Key: pixels.TileKey{Set: d.number, Column: f.TableColumn, Row: at}}
	}
	if d.resamples(u.field) {
		to.Win = shuffle.Box{H: f.H, W: f.W}
		return r.Resampled(p.ctx, a, win, to, e.options.MaxChunkBytes)
	}
	to.Pad(a.Index.Height, a.Index.Width)
	in := pixels.Inside(win, a.Index.Height, a.Index.Width)
	return r.Read(p.ctx, a, in, to.Bands.Picked, to, to.Masked(p.converters(u.row, u.field), in))
}

// rowOf returns the table's row of a step of a draw, or -1.
func (e *Engine) rowOf(draw *shuffle.Draw, step int) int64 {
	d := e.leaves[draw.Dataset]
	if d.steps == 0 {
		return draw.Row
	}
	return e.plan.Row(draw, step)
}

// windowOf returns the window of a draw in the pixels of a raster field, whose asset of the table's row at
// is a. All steps of a sequence share the window of the first.
func (e *Engine) windowOf(ctx context.Context, d *dataset, draw *shuffle.Draw, field int, at int64, a catalog.Asset) (shuffle.Box, error) {
	f, lead := d.rasters[field], d.rasters[0]
	if err := f.Fits(a.Index); err != nil {
		return shuffle.Box{}, err
	}
	first := a.Index
	if field > 0 {
		fa, err := d.table.Asset(ctx, lead.TableColumn, at)
		if err != nil {
			return shuffle.Box{}, err
		}
		first = fa.Index
		if !f.Ratio.Holds(first, a.Index) {
			return shuffle.Box{}, fault.New(fault.Unsupported, "asset", fault.NoOffset,
				"%d by %d pixels do not share a grid with the first field's %d by %d", a.Index.Height, a.Index.Width, first.Height, first.Width)
		}
	}
	if at != draw.Row {
		begin, err := e.begin(ctx, d, draw)
		if err != nil {
			return shuffle.Box{}, err
		}
		if first.Height != begin.Index.Height || first.Width != begin.Index.Width {
			return shuffle.Box{}, fault.New(fault.Unsupported, "asset", fault.NoOffset,
				"%d by %d pixels; the first step of the sequence has %d by %d", first.Height, first.Width, begin.Index.Height, begin.Index.Width)
		}
	}
	w, err := d.window(e.plan, draw, first.Height, first.Width, f.Pad)
	return f.Ratio.Scale(w), err
}

// begin returns the asset of the first raster field that the window of a sequence goes by: that of its first step, or,
// where bad steps are filled, of the first one that opens. Where sizes were counted before the run (Grid, TileWindow) and
// that of the first step was not to be had, the sequence has none, and all of its steps are bad.
func (e *Engine) begin(ctx context.Context, d *dataset, draw *shuffle.Draw) (catalog.Asset, error) {
	a, err := d.table.Asset(ctx, d.rasters[0].TableColumn, draw.Row)
	if d.sizes.known() && d.sizes.of(draw.Row).Height == 0 {
		return a, err
	}
	for step := 1; step < d.steps && err != nil && fault.KindOf(err) != 0 && e.spec.BadSamples == BadFill; step++ {
		if at := e.rowOf(draw, step); at >= 0 {
			a, err = d.table.Asset(ctx, d.rasters[0].TableColumn, at)
		}
	}
	return a, err
}

// row returns the sink for a unit of a raster field. The mask is written only where it is asked for
// or where a sample may be missing, or may have been before this one took its place.
func (p *Pending) row(u unit, x *chunk.Index, win shuffle.Box) (*pixels.Row, error) {
	l, convs := p.layout.rasters[u.field], p.converters(u.row, u.field)
	cv, err := convs.Get(x)
	if err != nil {
		return nil, err
	}
	in := pixels.Inside(win, x.Height, x.Width)
	whole := in.Y1-in.Y0 == win.H && in.X1-in.X0 == win.W
	missing := convs.Key(x).Has || convs.Nodata && x.Mask != nil
	return p.sink(u.field, u.row, u.step, cv, win, !l.native || !whole || missing || p.draws[u.row].Attempt > 0), nil
}

// set returns the dataset of a row; that of padding is the first.
func (p *Pending) set(k int) *dataset { return p.engine.leaves[p.draws[k].Dataset] }

// converters returns the casts of a field of a row to what its tensor holds in this batch.
func (p *Pending) converters(k, field int) *pixels.Converters {
	f := p.set(k).rasters[field]
	if p.layout.rasters[field].native {
		return &f.Wire
	}
	return &f.Final
}

// sink returns what writes a step of row k of a field, and with masked also its mask, if there is one.
func (p *Pending) sink(field, k, step int, cv *einops.Converter, win shuffle.Box, masked bool) *pixels.Row {
	l := p.layout.rasters[field]
	dst := einops.Target{Data: p.buf[l.data:l.end]}
	if l.mask >= 0 && masked {
		dst.Mask = p.mask(field)
	}
	return &pixels.Row{Field: p.set(k).rasters[field], Plan: l.plan, Dst: dst, Cv: cv, N: k, T: step, Win: win, Turn: p.draws[k].Transform}
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
		for step := range max(p.engine.sets[0].steps, 1) {
			p.clearStep(i, k, step)
		}
	}
}

// clearStep fills one step of a field of a row.
func (p *Pending) clearStep(field, k, step int) {
	cv, err := p.converters(k, field).Get(&chunk.Index{})
	if err != nil {
		panic("loader: a cast without nodata does not exist: " + err.Error()) // it was made when the field was compiled
	}
	p.sink(field, k, step, cv, shuffle.Box{}, true).Clear()
}

// clearValues makes nulls of the values of a row, and no window of its window.
func (p *Pending) clearValues(k int) {
	if p.window != nil {
		copy(p.window[k*windowBytes:], bytes.Repeat([]byte{0xff}, windowBytes))
	}
	steps := max(p.engine.sets[0].steps, 1)
	for _, v := range p.values {
		for i := range steps {
			v[k*steps+i] = catalog.Value{Null: true}
		}
	}
}

// values reads what rides along with a row.
func (u unit) values(d *dataset, draw *shuffle.Draw) error {
	p, steps := u.p, max(d.steps, 1)
	for i, v := range d.values {
		for step := range steps {
			at := p.engine.rowOf(draw, step)
			val := catalog.Value{Null: true}
			if at >= 0 {
				var err error
				if val, err = d.table.Value(p.ctx, v.column, at); err == nil {
					err = v.check(val)
				}
				if err != nil {
					return err
				}
			}
			p.values[i][u.row*steps+step] = val
		}
	}
	return nil
}

// window notes which window of its asset a row is.
func (u unit) window(d *dataset, draw *shuffle.Draw) error {
	p := u.p
	if p.window == nil {
		return nil
	}
	a, err := p.engine.begin(p.ctx, d, draw)
	if err != nil {
		return err
	}
	w, err := d.window(p.engine.plan, draw, a.Index.Height, a.Index.Width, d.rasters[0].Pad)
	if err != nil {
		return a.Fault(err)
	}
	for i, v := range [...]int{w.Y, w.X, w.H, w.W} {
		binary.LittleEndian.PutUint64(p.window[u.row*windowBytes+8*i:], uint64(v))
	}
	return nil
}

// windowAxes are the axes of WindowMember.
var windowAxes = []string{"n", "yxhw"}

// tensors names the parts of the filled memory, in the order of the spec's fields.
func (p *Pending) tensors() error {
	e, b := p.engine, p.batch
	text := int64(0)
	e.inOrder(func(i int) {
		b.Tensors = append(b.Tensors, p.raster(i)...)
	}, func(i int) {
		t := e.values[i].tensor(p.values[i], b.Valid)
		t.Shape, t.Axes = e.valueShape(b.Rows)
		text += int64(len(t.Data))
		b.Tensors = append(b.Tensors, t)
	})
	b.Tensors = append(append(b.Tensors, p.pointTensors()...), p.extras()...)
	if text > e.options.MemoryBytes {
		return fault.New(fault.Limit, "batch", fault.NoOffset, "values of %d bytes, over the %d bytes of batch memory", text, e.options.MemoryBytes)
	}
	return nil
}

// extras are the tensors that are no fields: of which source a row is, and which steps exist.
func (p *Pending) extras() (out []Tensor) {
	e, b := p.engine, p.batch
	if len(e.spec.Sources) > 0 {
		t := Tensor{Name: spec.SourceColumn, DType: chunk.Int64, Axes: []string{"n"}, Shape: []int64{int64(b.Rows)}, Data: make([]byte, 0, 8*b.Rows)}
		for k, pos := range b.Positions {
			source := int64(-1)
			if pos >= 0 {
				source = int64(p.set(k).number)
			}
			t.Data = binary.LittleEndian.AppendUint64(t.Data, uint64(source))
		}
		out = append(out, t)
	}
	if p.window != nil {
		out = append(out, Tensor{Name: spec.WindowMember, DType: chunk.Int64, Axes: windowAxes, Shape: []int64{int64(b.Rows), 4}, Data: p.window})
	}
	if w := e.spec.Sequence(); w != nil {
		t := Tensor{Name: w.Validity, DType: chunk.Uint8, Data: make([]byte, b.Rows*w.Length)}
		t.Shape, t.Axes = e.valueShape(b.Rows)
		for k, pos := range b.Positions {
			for step := range w.Length {
				if cleared := p.errs[k].step(step) != nil && p.draws[k].Attempt == 0; pos >= 0 && !cleared && e.rowOf(&p.draws[k], step) >= 0 {
					t.Data[k*w.Length+step] = 1
				}
			}
		}
		out = append(out, t)
	}
	return out
}

func (p *Pending) raster(i int) []Tensor {
	f, l := p.engine.rasters[i], p.layout.rasters[i]
	t := Tensor{Name: f.Name, DType: l.dtype, Axes: l.plan.Axes, Shape: pixels.Int64s(l.plan.Shape), Data: p.buf[l.data:l.end:l.end]}
	if l.native {
		t.Convert = convertOf(f, l.plan)
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

// convertOf tells the receiver the arithmetic that is left to it.
func convertOf(r *pixels.Raster, p *einops.Plan) *Convert {
	base := r.Final.Base
	c := &Convert{To: r.To, Scale: r.Scale, Offset: r.Offset, BandAxis: -1, Clip: base.Clip, Lo: base.Lo, Hi: base.Hi, Fill: r.FillValue}
	if len(r.Scale) > 1 {
		c.BandAxis = p.BandAxis()
	}
	return c
}
