// Package turns divides places, such as processors or requests at a time, among clients.
//
// A place goes to the client that has used the fewest so far, in seconds of places, among those that wait. So a client
// gets its share however it asks: by many requests, by long ones, or for datasets. Time while it asked for nothing is
// not saved for it, and what clients used while nobody waited does not count.
//
// Some work is urgent, such as batches, for which trainers wait one after the other. While urgent work waits, all other
// work has at most half of the places, and at least one. Use is counted for both kinds separately: a client whose
// urgent work gets more than its share would otherwise get nothing for its other work.
package turns

import (
	"context"
	"errors"
	"maps"
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

	waiting atomic.Int64 // len(queue)

	mu     sync.Mutex
	held   [kinds]int // places by kind of work
	queue  []*waiter  // the oldest first
	seats  map[seatKey]*seat
	clock  [kinds]time.Duration // use of the client that got the last place: new clients begin with it
	quiet  time.Time            // when the last request that waited went
	grants int64                // until now
	purge  int                  // seats at which those that are gone are forgotten
	slots  map[*Slot]*seat      // with a place, and who pays for it
	looked time.Time            // when unstick looked at slots
}

// kind is a kind of work.
type kind int

const (
	other kind = iota
	urgent
	halved // it has at most half of the places, whoever waits
	kinds
)

// seatKey names a client in one kind of work.
type seatKey struct {
	client any
	kind   kind
}

// seat is the use of one client in one kind of work.
type seat struct {
	seatKey
	held  int
	asked int           // requests that wait
	used  time.Duration // places times time, until since
	since time.Time
	grant int64 // number of its last place
}

// waiter is a request for a place.
type waiter struct {
	by    *seat         // who gets the place
	also  []any         // clients that wait behind it, and so may get it the place
	slot  *Slot         // for which the place is, or nil
	ready chan struct{} // closed when there is a place
}

const (
	// lag is how far a client may be ahead for the sake of those who wait behind it. Without a bound, it could use
	// another one that uses nothing as a lever. It is longer than any piece of work: see stuckFor.
	lag = 2 * time.Second
	// forgiven is for how long use counts although nobody waits, so that a client which leaves and comes back for each
	// piece of work still owes what it used. It is many pieces of work of some milliseconds.
	forgiven = time.Second
	// manySeats is how many seats there may be before those of clients that are gone are looked for.
	manySeats = 64
)

// New returns n places; a client may have each of them at a time.
func New(n, each int) *Turns {
	return &Turns{all: n, each: each, seats: map[seatKey]*seat{}, purge: manySeats, slots: map[*Slot]*seat{}}
}

// half returns how many places work that is not urgent has at most while urgent work waits.
func (t *Turns) half() int { return max(1, t.all/2) }

// free returns how many places nobody has. It needs the lock.
func (t *Turns) free() int { return t.all - t.held[other] - t.held[urgent] - t.held[halved] }

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

// Try takes a place if one is free and nobody waits.
func (t *Turns) Try(key any) bool { return t.try(key, nil) }

func (t *Turns) try(key any, to *Slot) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.queue) > 0 || t.free() == 0 || to.kind() == halved && t.held[halved] >= t.half() {
		return false
	}
	seat := t.seatOf(key, to.kind())
	if seat.held >= t.each {
		return false
	}
	now := time.Now()
	t.hold(&waiter{by: seat, slot: to}, seat.usedAt(now), now)
	return true
}

// Take waits for a place until ctx ends or stop is closed, which is ErrStopped. Unless there is an error, the caller
// gives the place back with Leave. Clients in also wait behind this request: it gets a place as soon as one of them
// would, because otherwise a client that has used much would hold them up.
func (t *Turns) Take(ctx context.Context, stop <-chan struct{}, key any, also ...any) error {
	if t.Try(key) {
		return nil
	}
	return t.take(ctx, stop, key, nil, also)
}

// take is Take after Try. to is the slot for which the place is, or nil.
func (t *Turns) take(ctx context.Context, stop <-chan struct{}, key any, to *Slot, also []any) (err error) {
	w := &waiter{also: also, slot: to, ready: make(chan struct{})}
	t.mu.Lock()
	if !t.contended(time.Now()) {
		t.forgive()
	}
	w.by = t.seatOf(key, to.kind())
	w.by.asked++
	t.queue = append(t.queue, w)
	t.waiting.Add(1)
	t.grant() // a place may have become free since Try
	t.mu.Unlock()
	if err = t.wait(ctx, stop, w); err == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if slices.Contains(t.queue, w) {
		t.remove(w)
		t.grant()
		t.end(w.by)
	} else if to == nil || t.slots[to] != nil { // it got a place at the last moment, which unstick did not take
		delete(t.slots, to)
		t.giveBack(w.by)
	}
	return err
}

// wait waits until w is ready.
func (t *Turns) wait(ctx context.Context, stop <-chan struct{}, w *waiter) error {
	var look <-chan time.Time
	if t.stuck > 0 {
		ticker := time.NewTicker(t.stuck / 2)
		defer ticker.Stop()
		look = ticker.C
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
	for slot, holder := range t.slots {
		if n := slot.ticks.Load(); n != slot.seen {
			slot.seen = n
			continue
		}
		delete(t.slots, slot)
		slot.away.Store(true)
		t.giveBack(holder)
	}
}

// Leave gives a place of Take back.
func (t *Turns) Leave(key any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.giveBack(t.seats[seatKey{key, other}])
}

// Wanted reports whether a request waits.
func (t *Turns) Wanted() bool { return t.Waiting() > 0 }

// Waiting returns how many requests wait.
func (t *Turns) Waiting() int64 { return t.waiting.Load() }

// Taken returns how many places are taken.
func (t *Turns) Taken() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all - t.free()
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
	t.held[mine.kind]-- // as it would be without this slot
	next, used, must := t.next(now, mine.kind == urgent)
	t.held[mine.kind]++
	if next == nil {
		return false
	}
	if own := mine.usedAt(now); (!must || mine.kind == urgent) && (used > own || used == own && !long) {
		return false
	}
	delete(t.slots, s)
	t.giveBack(mine)
	return true
}

// seatOf returns the seat of a client, whose use begins with that of the others. It needs the lock.
func (t *Turns) seatOf(client any, k kind) *seat {
	key := seatKey{client, k}
	s := t.seats[key]
	if s == nil {
		s = &seat{seatKey: key, since: time.Now()}
		t.seats[key] = s
	}
	if s.held == 0 && s.asked == 0 {
		s.used = max(s.used, t.clock[k])
	}
	return s
}

// usedAt returns the use until now.
func (s *seat) usedAt(now time.Time) time.Duration {
	return s.used + time.Duration(s.held)*now.Sub(s.since)
}

// change counts the use until now, and then places that come or go.
func (s *seat) change(places int, now time.Time) {
	s.used, s.since = s.usedAt(now), now
	s.held += places
}

// hold gives a request its place, which it got because somebody had used so much. It needs the lock.
func (t *Turns) hold(w *waiter, used time.Duration, now time.Time) {
	w.by.change(1, now)
	t.held[w.by.kind]++
	t.grants++
	w.by.grant = t.grants
	// Not of w.by, which may have used much more than those who wait behind it.
	t.clock[w.by.kind] = max(t.clock[w.by.kind], used)
	if w.slot != nil {
		w.slot.seen = 0 // it has ticked at least once
		t.slots[w.slot] = w.by
	}
}

// giveBack needs the lock.
func (t *Turns) giveBack(s *seat) {
	s.change(-1, time.Now())
	t.held[s.kind]--
	t.grant()
	t.end(s)
}

// remove takes a request out of the queue. It needs the lock.
func (t *Turns) remove(w *waiter) {
	pos := slices.Index(t.queue, w)
	t.queue = slices.Delete(t.queue, pos, pos+1)
	w.by.asked--
	if t.waiting.Add(-1) == 0 {
		t.quiet = time.Now()
	}
}

// grant hands out free places. It needs the lock.
func (t *Turns) grant() {
	for t.free() > 0 {
		now := time.Now()
		next, used, _ := t.next(now, false)
		if next == nil {
			return
		}
		t.remove(next)
		t.hold(next, used, now)
		close(next.ready)
	}
}

// next returns the request that gets the next place, or nil if none waits that may have one, and how much the client
// has used for whose sake it comes next. onlyUrgent says that the place is for urgent work: some waits, or has it now,
// and other work has its half. It needs the lock.
func (t *Turns) next(now time.Time, isUrgent bool) (next *waiter, least time.Duration, onlyUrgent bool) {
	onlyUrgent = t.held[other]+t.held[halved] >= t.half() && (isUrgent ||
		slices.ContainsFunc(t.queue, func(w *waiter) bool { return w.by.kind == urgent }))
	for _, w := range t.queue {
		kind := w.by.kind
		switch {
		case w.by.held >= t.each, onlyUrgent && kind != urgent, kind == halved && t.held[halved] >= t.half():
			continue
		}
		used := t.usedBehind(w, now)
		if next == nil || used < least || used == least && w.by.grant < next.by.grant {
			next, least = w, used
		}
	}
	return next, least, onlyUrgent
}

// usedBehind returns the least use of the client of a request and of those who wait behind it. It needs the lock.
func (t *Turns) usedBehind(w *waiter, now time.Time) time.Duration {
	own := w.by.usedAt(now)
	least := own
	for _, client := range w.also {
		if s := t.seats[seatKey{client, w.by.kind}]; s != nil {
			least = min(least, s.usedAt(now))
		} else {
			least = min(least, t.clock[w.by.kind])
		}
	}
	return max(least, own-lag)
}

// contended reports whether use counts: somebody waits, or did a moment ago. It needs the lock.
func (t *Turns) contended(now time.Time) bool { return len(t.queue) > 0 || now.Sub(t.quiet) < forgiven }

// forgive lets the use of all clients begin anew. It needs the lock.
func (t *Turns) forgive() {
	now := time.Now()
	clear(t.clock[:])
	for _, s := range t.seats {
		s.used, s.since = 0, now
	}
}

// end forgets a client that has no place and waits for none, unless it has used more than new clients begin with. It
// needs the lock.
func (t *Turns) end(s *seat) {
	if len(t.queue) == 0 && t.free() == t.all { // without other clients there are no debts
		clear(t.seats)
		clear(t.clock[:])
		return
	}
	now := time.Now()
	gone := func(s *seat) bool {
		return s.held == 0 && s.asked == 0 &&
			(s.used <= t.clock[s.kind] || now.Sub(s.since) > forgiven || !t.contended(now))
	}
	if gone(s) {
		delete(t.seats, s.seatKey)
	}
	if len(t.seats) >= t.purge {
		maps.DeleteFunc(t.seats, func(_ seatKey, s *seat) bool { return gone(s) })
		t.purge = max(manySeats, 2*len(t.seats))
	}
}
