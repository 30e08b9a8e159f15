package loader

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/chaski-eo/chaski/internal/crash"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/source"
)

// lookahead says to the cache on disk what is read next. The order is a function, so a dry run of the next steps
// says it. A nil *lookahead says nothing.
type lookahead struct {
	cache   source.DiskCache
	samples int64 // of an epoch
	steps   int64 // of an epoch
	batch   int64
	repeats bool // also samples in the order of the epoch read ranges several times
	// look returns a function that announces the reads of a step, for the rows that a ticket has of each batch (see
	// Engine.lookAhead), or nil if it is of no use to announce them.
	look func(ctx context.Context, of steps.Ticket, expect expect) (announceStep, error)
	work func(func()) // starts a goroutine
	log  *slog.Logger
	ctx  context.Context
	stop context.CancelFunc
	runs []*runAhead // only the dispatcher uses them
}

type (
	announceStep func(ctx context.Context, epoch uint64, step int64)
	expect       func(at int64, object any, bytes source.Range)
)

// runAhead is the run of a stream, whose next steps are announced. A nil *runAhead announces nothing.
type runAhead struct {
	lookahead *lookahead
	run       source.CacheRun
	of        steps.Ticket     // of the rows of the run
	caller    resources.Caller // of the stream; of the dispatcher, as is step
	step      int64            // that the last ticket was for, in all epochs
	steps     chan int64       // the same, for the goroutine that looks ahead
	ctx       context.Context
	end       context.CancelFunc
}

const (
	// stepsATicket is how many steps a ticket lets the dry run go ahead, as long as it has not gone far enough. That is
	// 16 times the quota, so it is there when the cache is full, and a run begins nearly as fast as without it.
	stepsATicket = 16
	// runsAhead is how many streams are looked ahead for, so clients cannot take memory without end.
	runsAhead = 64
	// askedAgain is how many steps back a ticket may be that is asked for once more, by a client that was cut off.
	askedAgain = 64
	// runKept is how long a stream is waited for that asks for nothing: longer than most validations take.
	runKept = 10 * time.Minute
)

// place returns the place of a position in the order of all epochs, of so many samples each.
func place(samples int64, epoch uint64, position int64) int64 { return int64(epoch)*samples + position }

// close ends all runs.
func (l *lookahead) close() {
	if l != nil {
		l.stop()
	}
}

// note tells the run of a ticket that the ticket begins. It returns nil if the ticket is of none.
func (l *lookahead) note(caller resources.Caller, t steps.Ticket) *runAhead {
	if l == nil || len(t.Positions) > 0 || t.First%l.batch != 0 || t.Weights == nil && !l.repeats {
		return nil
	}
	step := int64(t.Epoch)*l.steps + t.First/l.batch
	found, again := l.find(t, caller, step)
	if again {
		return found
	}
	if found == nil && len(l.runs) < runsAhead {
		run := l.cache.NewRun(place(l.samples, t.Epoch, t.First))
		if run == nil {
			return nil
		}
		found = &runAhead{lookahead: l, run: run, of: t, steps: make(chan int64, 1)}
		found.ctx, found.end = context.WithCancel(l.ctx)
		l.runs = append(l.runs, found)
		l.work(found.look)
	}
	if found == nil {
		return nil
	}
	found.caller, found.step = caller, step
	found.run.Begin(place(l.samples, t.Epoch, t.First+int64(t.Count)-1))
	select {
	case found.steps <- step:
	default: // it is behind, and hears of the next one
	}
	return found
}

// find returns the run that a ticket goes on, of its stream or of one that has ended: often each epoch has a stream of
// its own. again says that the ticket was asked for before. The run of a stream that jumps ends, or that draws by other
// weights.
func (l *lookahead) find(t steps.Ticket, caller resources.Caller, step int64) (found *runAhead, again bool) {
	l.runs = slices.DeleteFunc(l.runs, func(r *runAhead) bool { return r.ctx.Err() != nil })
	for _, known := range l.runs {
		if !known.follows(t) {
			continue
		}
		if step == known.step+1 && (found == nil || known.caller == caller) {
			found = known
		}
		if known.caller == caller && step <= known.step && step > known.step-askedAgain {
			return known, true
		}
	}
	for _, r := range l.runs {
		if r.caller == caller && r != found && r.sameRows(t) {
			r.end()
		}
	}
	return found, false
}

// sameRows reports whether a ticket has the rows of the run.
func (r *runAhead) sameRows(t steps.Ticket) bool {
	return r.of.RowStart == t.RowStart && r.of.RowStride == t.RowStride
}

// follows reports whether a ticket has the rows of the run, drawn by the same weights.
func (r *runAhead) follows(t steps.Ticket) bool {
	a, b := r.of.Weights, t.Weights
	if a == nil || b == nil {
		return a == b && r.sameRows(t)
	}
	return r.sameRows(t) && a.Hash == b.Hash && a.Once == b.Once
}

// endTicket says that a ticket has read all that it will.
func (r *runAhead) endTicket(t steps.Ticket) {
	if r == nil {
		return
	}
	for k := range t.Rows() {
		if position := t.Position(k, r.lookahead.samples); position >= 0 {
			r.run.Over(place(r.lookahead.samples, t.Epoch, position))
		}
	}
}

// look announces the reads of the next steps until the run ends.
func (r *runAhead) look() {
	defer r.run.Close()
	defer r.end()
	err := crash.Call(func() error {
		announce, err := r.lookahead.look(r.ctx, r.of, r.run.Expect)
		if announce == nil || err != nil { // a worker reports what is wrong
			r.run.Ready()
			<-r.ctx.Done()
			return nil
		}
		for next := int64(0); ; {
			select {
			case step := <-r.steps:
				next = r.announce(announce, step, max(next, step+1))
			case <-time.After(runKept):
				return nil
			case <-r.ctx.Done():
				return nil
			}
		}
	})
	crash.Report(r.lookahead.log, err)
}

// announce announces the steps from next on that a ticket for a step allows, and returns the one after them.
func (r *runAhead) announce(announce announceStep, step, next int64) int64 {
	steps := r.lookahead.steps
	for range stepsATicket {
		if next > step+steps || r.run.Full() {
			r.run.Ready()
			break
		}
		announce(r.ctx, uint64(next/steps), next%steps)
		next++
	}
	return next
}
