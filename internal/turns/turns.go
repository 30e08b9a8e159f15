// Package turns divides places, such as processors or requests at a time, among clients.
//
// A place goes to the client that has used the fewest so far, in seconds of places, among those that wait. So a client
// gets its share however it asks: by many requests, by long ones, or for datasets. Time while it asked for nothing is
// not saved for it.
//
// Some work is urgent, such as batches, for which trainers wait one after the other. While urgent work waits, all other
// work has at most half of the places, and at least one. Use is counted for both kinds separately: a client whose
// urgent work gets more than its share would otherwise get nothing for its other work.
package turns

import (
	"container/list"
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// ErrStopped is the error of a wait that was stopped.
var ErrStopped = errors.New("turns: stopped")

// Turns are places that clients take turns to have. Clients are named by keys, which are compared with ==. It is safe
// for concurrent use.
type Turns struct {
	all   int           // places
	each  int           // places of one client at most
	stuck time.Duration // see Processors; 0: never

	waiting atomic.Int64 // requests

	mu     sync.Mutex
	free   int
	urgent line
	other  line
	most   time.Duration   // largest use of a client: see lag
	slots  map[*Slot]*seat // with a place, and who pays for it
	looked time.Time       // when unstick looked at slots
}

// line is work of one kind: urgent or not.
type line struct {
	seats map[any]*seat // of clients with a place, or waiting for one, or with a debt
	queue list.List     // of *seat: those that wait and may have a place; who had one last comes last
	clock time.Duration // use of the client that got the last place: new clients begin with it
	purge int           // seats at which those without a debt are forgotten
	held  int           // places
	asked int           // requests that wait
}

// seat is the state of one client in one line.
type seat struct {
	key     any
	line    *line
	held    int
	used    time.Duration // places times time, until since
	since   time.Time
	waiters []*waiter
	turn    *list.Element // in line.queue, or nil
}

// waiter is a request for a place.
type waiter struct {
	by    *seat         // who gets the place
	also  []*seat       // who wait behind it, and so may get it the place
	slot  *Slot         // for which the place is, or nil
	ready chan struct{} // closed when there is a place
}

// lag is how far a client may be behind another one, for each place. Without a bound, a client that used idle
// processors for an hour would get none until a new client has used as much. Between two that wait at the same time the
// difference is about a piece of work, which is shorter: see stuckFor.
const lag = 2 * time.Second

// fewSeats is how many seats there may be before the seats of clients that are gone are looked for.
const fewSeats = 64

// forgiven is for how long a client that is gone is sure to keep its debt, which is a few slices of processors.
const forgiven = time.Second

// New returns n places; a client may have each of them at a time.
func New(n, each int) *Turns {
	turns := &Turns{all: n, each: each, free: n, slots: map[*Slot]*seat{}}
	for _, l := range []*line{&turns.urgent, &turns.other} {
		l.seats, l.purge = map[any]*seat{}, fewSeats
	}
	return turns
}

// half returns how many places work that is not urgent has at most while urgent work waits.
func (t *Turns) half() int { return max(1, t.all/2) }

// lineOf returns the line of a slot, or of a request without one.
func (t *Turns) lineOf(s *Slot) *line {
	if s != nil && s.urgent {
		return &t.urgent
	}
	return &t.other
}

// stuckFor is longer than any piece of work between two Ticks: decoding a chunk of 64 MiB takes half a second.
const stuckFor = 2 * time.Second

// Processors returns n places for work that passes its place on soon, as Slot does. Where others wait and a slot has
// not ticked between two looks, which are at least two seconds apart, its goroutine waits for something, such as a file
// system that does not answer. Then others get its place, and it has to take one again at its next Tick.
func Processors(n int) *Turns {
	t := New(n, math.MaxInt) // no bound of its own, so that goroutines of one client pass places on, too
	t.stuck = stuckFor
	return t
}

// Try takes a place if one is free and no other client waits for it.
func (t *Turns) Try(key any) bool { return t.try(key, nil) }

func (t *Turns) try(key any, to *Slot) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.free == 0 || t.urgent.queue.Len() > 0 || t.other.queue.Len() > 0 {
		return false
	}
	line := t.lineOf(to)
	seat := t.of(line, key)
	if seat.held >= t.each {
		return false
	}
	t.hold(seat, to, time.Now())
	line.clock = max(line.clock, seat.used)
	return true
}

// Take waits for a place until ctx ends or stop is closed, which is ErrStopped. Unless there is an error, the caller
// gives the place back with Leave. Clients in also wait behind this request: it gets a place as soon as one of them
// would, because otherwise a client that has used much would hold them up. They are only for Turns without a bound for
// each client.
func (t *Turns) Take(ctx context.Context, stop <-chan struct{}, key any, also ...any) error {
	if t.Try(key) {
		return nil
	}
	return t.take(ctx, stop, key, nil, also)
}

// take is Take after Try. to is the slot for which the place is, or nil.
func (t *Turns) take(ctx context.Context, stop <-chan struct{}, key any, to *Slot, also []any) (err error) {
	t.mu.Lock()
	waiter := t.ask(key, to, also)
	t.grant() // a place may have become free since Try
	t.mu.Unlock()
	if err = t.wait(ctx, stop, waiter); err == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-waiter.ready: // at the last moment
		if holder := t.slots[to]; to == nil || holder != nil { // otherwise unstick was faster
			delete(t.slots, to)
			t.giveBack(waiter.by)
		}
	default:
		t.forget(waiter)
		t.grant()
		t.end(waiter.by)
	}
	return err
}

// wait waits until w is ready.
func (t *Turns) wait(ctx context.Context, stop <-chan struct{}, w *waiter) error {
	var look <-chan time.Time
	if t.stuck > 0 {
		k := time.NewTicker(t.stuck / 2)
		defer k.Stop()
		look = k.C
	}
	for {
		select {
		case <-w.ready:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-stop:
			return ErrStopped
		case <-look:
			t.unstick()
		}
	}
}

// unstick gives the places of slots that have not ticked since it last looked to others.
func (t *Turns) unstick() {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if now.Sub(t.looked) < t.stuck {
		return
	}
	t.looked = now
	for s, holder := range t.slots {
		if n := s.ticks.Load(); n != s.seen {
			s.seen = n
			continue
		}
		delete(t.slots, s)
		s.away.Store(true)
		t.giveBack(holder)
	}
}

// Leave gives a place back.
func (t *Turns) Leave(key any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.giveBack(t.other.seats[key])
}

// Wanted reports whether a request waits.
func (t *Turns) Wanted() bool { return t.Waiting() > 0 }

// Waiting returns how many requests wait.
func (t *Turns) Waiting() int64 { return t.waiting.Load() }

// Taken returns how many places are taken.
func (t *Turns) Taken() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all - t.free
}

// leave gives the place of a slot back, unless unstick has done that.
func (t *Turns) leave(s *Slot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if holder := t.slots[s]; holder != nil {
		delete(t.slots, s)
		t.giveBack(holder)
	}
	s.away.Store(false)
}

// passOn gives the place of a slot to a client that waits and has used less, if there is one, and after a long time
// also to one that has used as much, such as another goroutine of its own client. If urgent work waits, and the slot is
// one too many that is not, it gives the place to urgent work, even of a client that has used more.
func (t *Turns) passOn(s *Slot, long bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	mine := t.slots[s]
	if mine == nil { // unstick was faster
		s.away.Store(false)
		return true
	}
	now := time.Now()
	t.advance(mine, now)
	others := t.other.held // without this slot
	if !s.urgent {
		others--
	}
	urgent := others >= t.half() && (s.urgent || t.urgent.queue.Len() > 0)
	next := t.next(now, urgent)
	if next == nil {
		return false
	}
	must, enough := urgent && !s.urgent, next.used > mine.used || next.used == mine.used && !long
	if !must && enough {
		return false
	}
	delete(t.slots, s)
	t.giveBack(mine)
	return true
}

// of returns the seat of a client in a line. It needs the lock.
func (t *Turns) of(l *line, key any) *seat {
	s := l.seats[key]
	if s == nil {
		s = &seat{key: key, line: l}
		l.seats[key] = s
	}
	if l.held == 0 && l.asked == 0 { // its clock has stood still
		l.clock = max(l.clock, t.urgent.clock, t.other.clock)
	}
	if s.held == 0 && len(s.waiters) == 0 {
		s.used = max(s.used, l.clock)
	}
	return s
}

// advance counts the use of a client until now. It needs the lock.
func (t *Turns) advance(s *seat, now time.Time) {
	s.used += time.Duration(s.held) * now.Sub(s.since)
	s.since = now
	t.most = max(t.most, s.used)
	s.used = max(s.used, t.most-time.Duration(t.all)*lag)
}

// hold gives s a place, for a slot or nil. It needs the lock.
func (t *Turns) hold(s *seat, to *Slot, now time.Time) {
	t.advance(s, now)
	s.held++
	s.line.held++
	t.free--
	if to != nil {
		to.seen = 0 // it has ticked at least once
		t.slots[to] = s
	}
}

// giveBack needs the lock.
func (t *Turns) giveBack(s *seat) {
	t.advance(s, time.Now())
	s.held--
	s.line.held--
	t.free++
	t.enqueue(s)
	t.grant()
	t.end(s)
}

// ask adds a request for a slot, or nil. It needs the lock.
func (t *Turns) ask(key any, to *Slot, also []any) *waiter {
	line := t.lineOf(to)
	w := &waiter{by: t.of(line, key), slot: to, ready: make(chan struct{})}
	w.by.waiters = append(w.by.waiters, w)
	for _, k := range also {
		if k != key {
			w.also = append(w.also, t.of(line, k))
		}
	}
	line.asked++
	for _, s := range w.also {
		s.waiters = append(s.waiters, w)
		t.enqueue(s)
	}
	t.enqueue(w.by)
	t.waiting.Add(1)
	return w
}

// forget removes a request. It needs the lock.
func (t *Turns) forget(w *waiter) {
	t.waiting.Add(-1)
	w.by.line.asked--
	drop := func(s *seat) {
		i := slices.Index(s.waiters, w) // 0, unless it gives up
		s.waiters = slices.Delete(s.waiters, i, i+1)
		t.enqueue(s)
	}
	drop(w.by)
	for _, s := range w.also {
		drop(s)
		t.end(s)
	}
}

// grant hands out free places. It needs the lock.
func (t *Turns) grant() {
	for t.free > 0 {
		now := time.Now()
		seat := t.next(now, t.urgent.queue.Len() > 0 && t.other.held >= t.half())
		if seat == nil {
			return
		}
		waiter := seat.waiters[0]
		seat.line.queue.Remove(seat.turn) // to the end, if it may have more
		seat.turn = nil
		t.hold(waiter.by, waiter.slot, now)
		// Not of w.by, which may have used much more than those who wait.
		seat.line.clock = max(seat.line.clock, seat.used)
		t.forget(waiter)
		t.enqueue(seat)
		close(waiter.ready)
	}
}

// next returns the seat that gets the next place, or nil if none waits. With urgent, only urgent work counts. It needs
// the lock.
func (t *Turns) next(now time.Time, urgent bool) (least *seat) {
	for _, l := range []*line{&t.urgent, &t.other} {
		for e := l.queue.Front(); e != nil; e = e.Next() {
			s := e.Value.(*seat)
			if t.advance(s, now); least == nil || s.used < least.used {
				least = s
			}
		}
		if urgent {
			break
		}
	}
	return least
}

// enqueue gives s a turn, or takes it away. It needs the lock.
func (t *Turns) enqueue(s *seat) {
	switch may := len(s.waiters) > 0 && s.held < t.each; {
	case may && s.turn == nil:
		s.turn = s.line.queue.PushBack(s)
	case !may && s.turn != nil:
		s.line.queue.Remove(s.turn)
		s.turn = nil
	}
}

// end forgets clients without places and without a debt. Use beyond the others' is a debt, with which a client
// begins when it comes back. It needs the lock.
func (t *Turns) end(s *seat) {
	if s.held > 0 || len(s.waiters) > 0 {
		return
	}
	if t.free == t.all && t.waiting.Load() == 0 {
		t.most = 0 // without other clients there are no debts
		for _, l := range []*line{&t.urgent, &t.other} {
			clear(l.seats)
			l.clock, l.purge = 0, fewSeats
		}
		return
	}
	l := s.line
	if s.used <= l.clock {
		delete(l.seats, s.key)
	}
	if len(l.seats) >= l.purge {
		now := time.Now()
		for k, s := range l.seats {
			if s.held == 0 && len(s.waiters) == 0 && (s.used <= l.clock || now.Sub(s.since) > forgiven) {
				delete(l.seats, k)
			}
		}
		l.purge = max(fewSeats, 2*len(l.seats))
	}
}
