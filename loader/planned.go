package loader

import (
	"context"
	"slices"
	"sync"

	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/shuffle/steps"
)

// plannedTicket is a ticket whose chunks Engine.tiles is to be told about.
type plannedTicket struct {
	ctx    context.Context
	ticket steps.Ticket
	plan   *tilePlan
}

// tilePlan is what a ticket has told Engine.tiles about the chunks of its windows.
type tilePlan struct {
	order  int64 // of the ticket's first row in Engine.tiles
	mu     sync.Mutex
	isDone bool // the ticket is done
	orders []int64
	needs  [][]pixels.Need // for each of orders
}

// add plans the chunks of a window, unless the ticket is done. It reports whether it planned them.
func (t *tilePlan) add(tiles *pixels.TileCache, order int64, needs []pixels.Need) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isDone {
		return false
	}
	tiles.Plan(order, needs)
	t.orders, t.needs = append(t.orders, order), append(t.needs, needs)
	return true
}

// end takes back what is left of the plan.
func (t *tilePlan) end(tiles *pixels.TileCache) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.isDone = true
	for i, order := range t.orders {
		tiles.Forget(order, t.needs[i])
	}
}

// tilePlanner tells the cache of tiles which chunks are needed, and when. It knows the windows of tickets, and between
// two tickets it draws the windows that a run will ask for next: the order is a function of the spec. Tiles that are
// needed soon then stay, however few samples a batch has. Only its goroutine uses it.
type tilePlanner struct {
	tiles     *pixels.TileCache
	ahead     bool  // windows are planned that no ticket has asked for
	samples   int64 // of an epoch
	steps     int64 // of an epoch
	batch     int
	lastEpoch uint64
	// needs returns the chunks that the window in a row of a ticket needs and may share.
	needs  func(ctx context.Context, t steps.Ticket, row int) []pixels.Need
	runs   []*plannedRun
	misses int64 // TileCache.Misses at the last ticket
	eager  bool  // there were more since the ticket before that
}

// plannedRun is a run of tickets, each for the step behind the one before it. A nil *plannedRun has no windows.
type plannedRun struct {
	next    steps.Ticket     // the first one whose windows are not all foreseen
	row     int              // of next: the first one that is not
	order   int64            // of that row, as long as no other run comes between
	rows    int              // of the tickets that have come
	last    int64            // the order behind the last of them
	caller  resources.Caller // of that one
	windows []aheadWindow    // those foreseen that no ticket has asked for, the next one first
	bytes   int64            // of their planned chunks, decoded
	chunks  int              // how many these are
}

// aheadWindow is a window that a run asks for later: a row of the ticket whose first position is first.
type aheadWindow struct {
	epoch uint64
	first int64
	row   int
	order int64         // that its chunks are planned with
	needs []pixels.Need // all chunks
	early []pixels.Need // those that are planned already
}

const (
	// boundsAhead limits how far a run is planned: the chunks of its windows, decoded, fill the cache this many times.
	// With scenes of three times the cache and random windows, the best cache finds 65 % of the chunks with plans of 3
	// times, 68 % with 4 times, and 68 % with plans of the whole epoch.
	boundsAhead = 4
	// chunksAhead bounds the memory of the plan, which nobody counts: some 300 bytes a chunk are 2.5 MB. These are 340
	// windows of six bands in four tiles each, whose headers the engine mostly has in memory until they are read.
	chunksAhead = 8 << 10
	// plannedRuns is how many runs are foreseen, so clients cannot take memory without end.
	plannedRuns = 64
	// staleAfter is when a run counts as left: each other run has asked for this many times its windows.
	staleAfter = 4
)

// following returns the ticket for the step behind the step of a ticket, for the same rows.
func (p *tilePlanner) following(t steps.Ticket) steps.Ticket {
	epoch, step := t.Epoch, t.First/int64(p.batch)+1
	if step >= p.steps {
		epoch, step = epoch+1, 0
	}
	next := steps.StepTicket(epoch, step, p.batch, t.RowStart, t.RowStride)
	if t.Unpadded {
		next = next.WithoutPadding(p.samples)
	}
	return next
}

// plan plans the windows of tickets until tickets is closed. A worker that is faster reads its window without sharing.
func (p *tilePlanner) plan(ctx context.Context, tickets <-chan plannedTicket) {
	defer func() {
		for _, r := range p.runs {
			r.forget(p.tiles, len(r.windows))
		}
	}()
	for {
		run := p.hungry()
		if run == nil || ctx.Err() != nil {
			ticket, ok := <-tickets
			if !ok {
				return
			}
			p.ticket(ticket)
			continue
		}
		select {
		case ticket, ok := <-tickets:
			if !ok {
				return
			}
			p.ticket(ticket)
		default:
			p.foresee(ctx, run)
		}
	}
}

// hungry returns the run with the least chunks ahead of those that may have more, or nil. While all chunks are there,
// plans change nothing. At first a run has no more windows ahead than it has asked for, since it may end early.
func (p *tilePlanner) hungry() (found *plannedRun) {
	if !p.eager {
		return nil
	}
	for _, r := range p.runs {
		room := r.bytes < boundsAhead*p.tiles.Bound/int64(len(p.runs)) && r.chunks < chunksAhead/len(p.runs)
		goesOn := len(r.windows) < r.rows && r.next.Epoch <= p.lastEpoch
		if room && goesOn && (found == nil || r.bytes < found.bytes) {
			found = r
		}
	}
	return found
}

// foresee plans the next window of a run. Rows of uncompressed chunks cost little to read: only tickets plan these.
func (p *tilePlanner) foresee(ctx context.Context, r *plannedRun) {
	t := r.next
	w := aheadWindow{epoch: t.Epoch, first: t.First, row: r.row, order: r.order, needs: p.needs(ctx, t, r.row)}
	for _, need := range w.needs {
		if need.Compressed {
			w.early = append(w.early, need)
			r.bytes += int64(need.Bytes)
		}
	}
	p.tiles.Plan(w.order, w.early)
	r.chunks += len(w.early)
	r.windows = append(r.windows, w)
	r.order++
	if r.row++; r.row == t.Rows() {
		r.next, r.row = p.following(t), 0
	}
}

// ticket plans the windows of a ticket, those that were foreseen once more: with all of their chunks, and in the order
// that they have now.
func (p *tilePlanner) ticket(t plannedTicket) {
	misses := p.tiles.Misses()
	p.misses, p.eager = misses, misses > p.misses
	run, rows := p.runOf(t), t.ticket.Rows()
	for k, works := 0, true; k < rows; k++ {
		w, foreseen := run.take(p.tiles, t.ticket, k)
		if works && !foreseen {
			w.needs = p.needs(t.ctx, t.ticket, k)
		}
		works = works && t.plan.add(p.tiles, t.plan.order+int64(k), w.needs)
	}
	if run == nil {
		return
	}
	if len(run.windows) == 0 {
		run.next, run.row = p.following(t.ticket), 0
	}
	run.caller, run.last = resources.CallerOf(t.ctx), t.plan.order+int64(rows)
	run.rows += rows
	run.order = max(run.order, run.last+int64(len(run.windows)))
}

// runOf returns the run of a ticket, a new one for the first ticket of one; nil for a ticket of none, such as one whose
// samples are named or drawn by weights. Runs that jump or that others have left behind end.
func (p *tilePlanner) runOf(t plannedTicket) (found *plannedRun) {
	if !p.ahead || len(t.ticket.Positions) > 0 || t.ticket.Weights != nil {
		return nil
	}
	caller, patience := resources.CallerOf(t.ctx), staleAfter*int64(len(p.runs))
	p.runs = slices.DeleteFunc(p.runs, func(r *plannedRun) bool {
		jumps := r.caller == caller && r.sameRows(t.ticket)
		if found == nil && r.skipTo(p.tiles, t.ticket) {
			found, jumps = r, false
		}
		ends := jumps || t.plan.order-r.last > patience*int64(len(r.windows)+t.ticket.Rows())
		if ends && r != found {
			r.forget(p.tiles, len(r.windows))
		}
		return ends && r != found
	})
	if found == nil && len(p.runs) < plannedRuns {
		found = &plannedRun{next: t.ticket}
		p.runs = append(p.runs, found)
	}
	return found
}

// sameRows reports whether a ticket has the rows of the run.
func (r *plannedRun) sameRows(t steps.Ticket) bool {
	return r.next.RowStart == t.RowStart && r.next.RowStride == t.RowStride && r.next.Unpadded == t.Unpadded
}

// skipTo reports whether a ticket is one that the run asks for next, and forgets the windows before it.
func (r *plannedRun) skipTo(tiles *pixels.TileCache, t steps.Ticket) bool {
	if !r.sameRows(t) {
		return false
	}
	if len(r.windows) == 0 {
		return r.next.Epoch == t.Epoch && r.next.First == t.First
	}
	place := slices.IndexFunc(r.windows, func(w aheadWindow) bool { return w.epoch == t.Epoch && w.first == t.First })
	if place < 0 {
		return false
	}
	r.forget(tiles, place)
	return true
}

// take takes the window of a row of a ticket from the windows ahead, if it is the next one.
func (r *plannedRun) take(tiles *pixels.TileCache, t steps.Ticket, row int) (w aheadWindow, ok bool) {
	if r == nil || len(r.windows) == 0 {
		return w, false
	}
	if w = r.windows[0]; w.epoch != t.Epoch || w.first != t.First || w.row != row {
		return aheadWindow{}, false
	}
	r.forget(tiles, 1)
	return w, true
}

// forget takes back what was planned for the next n windows ahead.
func (r *plannedRun) forget(tiles *pixels.TileCache, n int) {
	for _, w := range r.windows[:n] {
		tiles.Forget(w.order, w.early)
		r.chunks -= len(w.early)
		for _, need := range w.early {
			r.bytes -= int64(need.Bytes)
		}
	}
	r.windows = slices.Delete(r.windows, 0, n)
}
