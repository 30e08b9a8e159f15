// Package turns divides places, such as processors or requests at a time, among clients.
//
// A place goes to the client that has used the fewest so far, in seconds of places, among those that wait. So a client
// gets its share however it asks: by many requests, by long ones, or for datasets. A client that comes begins with the
// least use of those that are there, so time while it asked for nothing is not saved for it, and nobody owes more than
// maxDebt, so it hardly counts what clients used while nobody waited.
//
// Some work is urgent, such as batches, for which trainers wait one after the other. While urgent work waits, all other
// work has at most half of the places, and at least one. Use is counted for each kind of work separately: a client
// whose urgent work gets more than its share would otherwise get nothing for its other work. Spare work has places that
// nobody else wants, and passes them on at its next Tick.
package turns

import (
	"context"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chaski-eo/chaski/internal/pace"
)

// Turns are places that clients take turns to have. Clients are named by keys, which are compared with ==. It is safe
// for concurrent use.
type Turns struct {
	all   int           // places
	each  int           // places of one client at most
	stuck time.Duration // see Processors; 0: never

	waiting atomic.Int64 // len(queue) without spare work

	mu       sync.Mutex
	places   [kinds]int // that slots have, by kind of work
	queue    []*Slot    // that wait for a place, the oldest first
	slots    map[*Slot]struct{}
	seats    map[seatKey]*clientSeat
	grants   int64     // until now
	lastLook time.Time // when unstick looked at slots
}

// kind is a kind of work.
type kind int

const (
	other kind = iota
	urgent
	halved // it has at most half of the places, whoever waits
	spare  // it has places while no other work waits
	kinds
)

// seatKey names a client in one kind of work.
type seatKey struct {
	client any
	kind   kind
}

// clientSeat is the use of one client in one kind of work.
type clientSeat struct {
	seatKey
	places  int
	waiters int           // slots that wait
	used    time.Duration // places times time, until since
	since   time.Time
	grant   int64 // number of its last place
}

const (
	// maxDebt is how much more a client may have used than the one that used least, in what counts. It is longer than
	// any piece of work: see stuckFor.
	maxDebt = 2 * time.Second
	// stuckFor is longer than any piece of work between two Ticks: decoding a chunk of 64 MiB takes half a second.
	stuckFor = 2 * time.Second
)

// New returns n places; a client may have each of them at a time.
func New(n, each int) *Turns {
	return &Turns{all: n, each: each, seats: map[seatKey]*clientSeat{}, slots: map[*Slot]struct{}{}}
}

// Processors returns n places for work that passes its place on soon, by a Tick before each piece. Where others wait
// and a slot has the same tick in two looks, which are at least two seconds apart, its goroutine waits for something,
// such as a file system that hangs. Then others get its place, and it has to take one again at its next Tick.
func Processors(n int) *Turns {
	// No bound of its own, so goroutines of one client pass places on, too.
	t := New(n, math.MaxInt)
	t.stuck = stuckFor
	return t
}

// Waiting returns how many slots wait, without those of spare work.
func (t *Turns) Waiting() int64 { return t.waiting.Load() }

// Wanted reports whether a slot waits.
func (t *Turns) Wanted() bool { return t.Waiting() > 0 }

// Taken returns how many places are taken.
func (t *Turns) Taken() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all - t.free()
}

// half returns how many places work that is not urgent has at most while urgent work waits.
func (t *Turns) half() int { return max(1, t.all/2) }

// free returns how many places nobody has. It needs the lock.
func (t *Turns) free() int {
	free := t.all
	for _, n := range t.places {
		free -= n
	}
	return free
}

// take waits for a place for a slot.
func (t *Turns) take(ctx context.Context, s *Slot) error {
	t.mu.Lock()
	now := time.Now()
	s.seat = t.seatOf(seatKey{s.key, s.work}, now)
	s.seat.waiters++
	t.queue = append(t.queue, s)
	t.waiting.Add(s.counted())
	t.grant(now)
	if s.hasPlace.Load() {
		t.mu.Unlock()
		return nil
	}
	ready := make(chan struct{})
	s.ready = ready
	t.mu.Unlock()

	// Those that wait look, since a goroutine that is stuck cannot give its place back.
	var look <-chan time.Time
	if t.stuck > 0 {
		ticker := time.NewTicker(t.stuck / 2)
		defer ticker.Stop()
		look = ticker.C
	}
	for {
		select {
		case <-ready:
			return nil
		case <-look:
			t.unstick()
		case <-ctx.Done():
			t.giveUp(s)
			return context.Cause(ctx)
		}
	}
}

// giveUp ends the wait of a slot, which may have got a place at the last moment.
func (t *Turns) giveUp(s *Slot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Contains(t.queue, s) {
		t.giveBack(s)
		return
	}
	t.remove(s)
	s.seat = nil
	now := time.Now()
	t.grant(now)
	t.forget(now)
}

// leave gives the place of a slot back, if it has one.
func (t *Turns) leave(s *Slot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.giveBack(s)
}

// giveBack is leave with the lock.
func (t *Turns) giveBack(s *Slot) {
	if s.seat == nil {
		return // unstick was faster
	}
	now := time.Now()
	s.seat.change(-1, now)
	t.places[s.work]--
	delete(t.slots, s)
	s.seat = nil
	s.hasPlace.Store(false)
	t.grant(now)
	t.forget(now)
}

// unstick gives the places of slots that have not ticked since it last looked to others.
func (t *Turns) unstick() {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if now.Sub(t.lastLook) < t.stuck {
		return
	}
	t.lastLook = now
	for _, slot := range slices.Collect(maps.Keys(t.slots)) {
		if n := slot.ticks.Load(); n != slot.lastTicks {
			slot.lastTicks = n
		} else {
			t.giveBack(slot)
		}
	}
}

// passOn gives the place of a slot to a client that waits and has used less, if there is one, and after a long time
// also to one that has used as much, such as another goroutine of its own client. If urgent work waits, and the slot is
// one too many that is not, it gives the place to urgent work, even of a client that has used more. Spare work gives it
// to all other work, and gets it from none.
func (t *Turns) passOn(s *Slot, long bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.seat == nil { // unstick was faster
		return
	}
	now := time.Now()
	t.places[s.work]-- // as it would be without this slot
	next, must := t.next(now, s.work == urgent)
	t.places[s.work]++
	if next == nil {
		return
	}
	if (s.work == spare) != (next.work == spare) {
		if s.work == spare {
			t.giveBack(s)
		}
		return
	}
	excess := next.seat.usedAt(now) - s.seat.usedAt(now)
	fairer := excess < 0 || excess == 0 && long
	if fairer || must && s.work != urgent {
		t.giveBack(s)
	}
}

// grant hands out free places. It needs the lock.
func (t *Turns) grant(now time.Time) {
	for t.free() > 0 {
		slot, _ := t.next(now, false)
		if slot == nil {
			return
		}
		t.remove(slot)
		slot.seat.change(1, now)
		t.places[slot.work]++
		t.grants++
		slot.seat.grant = t.grants
		// It has ticked at least once, so the first look does not take its place.
		slot.lastTicks = 0
		t.slots[slot] = struct{}{}
		slot.hasPlace.Store(true)
		if slot.ready != nil {
			close(slot.ready)
			slot.ready = nil
		}
	}
}

// remove takes a slot out of the queue. It needs the lock.
func (t *Turns) remove(s *Slot) {
	pos := slices.Index(t.queue, s)
	t.queue = slices.Delete(t.queue, pos, pos+1)
	s.seat.waiters--
	t.waiting.Add(-s.counted())
}

// next returns the slot that gets the next place, or nil if none waits that may have one. onlyUrgent says that the
// place is for urgent work: some waits, or has it now, and other work has its half. A spare slot is next only if no
// other may have the place. It needs the lock.
func (t *Turns) next(now time.Time, isUrgent bool) (next *Slot, onlyUrgent bool) {
	onlyUrgent = t.places[other]+t.places[halved] >= t.half() && (isUrgent ||
		slices.ContainsFunc(t.queue, func(s *Slot) bool { return s.work == urgent }))
	var least time.Duration
	for _, slot := range t.queue {
		switch {
		case slot.seat.places >= t.each, onlyUrgent && slot.work != urgent,
			slot.work == halved && t.places[halved] >= t.half():
			continue
		}
		used := slot.seat.usedAt(now)
		better := next == nil || used < least || used == least && slot.seat.grant < next.seat.grant
		if next != nil && (slot.work == spare) != (next.work == spare) {
			better = next.work == spare
		}
		if better {
			next, least = slot, used
		}
	}
	return next, onlyUrgent
}

// active reports whether the client has a place or waits for one.
func (s *clientSeat) active() bool { return s.places > 0 || s.waiters > 0 }

// usedAt returns the use until now.
func (s *clientSeat) usedAt(now time.Time) time.Duration {
	return s.used + time.Duration(s.places)*now.Sub(s.since)
}

// change counts the use until now, and then places that come or go.
func (s *clientSeat) change(places int, now time.Time) {
	s.used, s.since = s.usedAt(now), now
	s.places += places
}

// seatOf returns the seat of a client that asks for a place. It needs the lock.
func (t *Turns) seatOf(key seatKey, now time.Time) *clientSeat {
	least := t.least(now)[key.kind]
	found := t.seats[key]
	if found == nil {
		found = &clientSeat{seatKey: key, since: now}
		t.seats[key] = found
	}
	if !found.active() {
		found.used = max(found.used, least)
	}
	for _, other := range t.seats {
		if other.kind == key.kind {
			// Otherwise what it used since its last change would come on top of the bound.
			other.change(0, now)
			other.used = min(other.used, least+maxDebt)
		}
	}
	return found
}

// least returns the least use of the active clients in each kind of work, or in all kinds where a kind has no active
// client. It needs the lock.
func (t *Turns) least(now time.Time) (least [kinds]time.Duration) {
	var all time.Duration
	var some [kinds]bool
	known := false
	for _, seat := range t.seats {
		if !seat.active() {
			continue
		}
		used := seat.usedAt(now)
		if !known || used < all {
			all, known = used, true
		}
		if !some[seat.kind] || used < least[seat.kind] {
			least[seat.kind], some[seat.kind] = used, true
		}
	}
	for work := range least {
		if !some[work] {
			least[work] = all
		}
	}
	return least
}

// forget drops the seats of inactive clients that owe nothing. It needs the lock.
func (t *Turns) forget(now time.Time) {
	if t.free() == t.all && len(t.queue) == 0 { // without other clients there are no debts
		clear(t.seats)
		return
	}
	least := t.least(now)
	maps.DeleteFunc(t.seats, func(_ seatKey, s *clientSeat) bool { return !s.active() && s.used < least[s.kind] })
}

// slice is for how long a goroutine keeps its place although others wait. It is a hundred times what passing a place on
// takes (about 10 µs, with the change of goroutines), and a tenth of what decoding a batch of 16 chips takes.
const slice = time.Millisecond

// long is for how long a goroutine keeps its place although others of the same client wait. The client gains nothing
// from a change, so it is rare; but a question that computes for an hour must not hold up a stream of its own client.
const long = 50 * slice

// Slot is the place of one goroutine that computes, or of one request. It has a place from a Tick until Rest. nil, the
// slot of a nil *Turns, bounds nothing. It is safe for concurrent use, but then the goroutines share its place.
type Slot struct {
	turns    *Turns
	work     kind
	ticks    atomic.Uint64
	hasPlace atomic.Bool // set with the lock of turns

	mu   sync.Mutex
	key  any
	from time.Time // when it got the place
	till time.Time // others that wait do not get the place before

	// Guarded by the lock of turns.
	seat      *clientSeat   // of the client that has the place, or waits for one; nil: neither
	lastTicks uint64        // ticks when unstick looked
	ready     chan struct{} // closed when it gets the place that it waits for
}

// Slot returns a slot without a place, for a client.
func (t *Turns) Slot(key any) *Slot {
	if t == nil {
		return nil
	}
	return &Slot{turns: t, key: key}
}

// Urgent returns s, whose work is urgent from now on: see the package's comment. It must not have a place yet.
func (s *Slot) Urgent() *Slot { return s.as(urgent) }

// Halved returns s, whose work has at most half of the places from now on, even while nobody else wants them: a piece
// of it may take so long that others would wait for it. It must not have a place yet.
func (s *Slot) Halved() *Slot { return s.as(halved) }

// Spare returns s, whose work has a place from now on only while no other work wants it. It must not have a place yet.
func (s *Slot) Spare() *Slot { return s.as(spare) }

// counted returns what a slot that waits adds to Turns.waiting. Work does not look at each Tick for others that wait if
// only spare work does.
func (s *Slot) counted() int64 {
	if s.work == spare {
		return 0
	}
	return 1
}

func (s *Slot) as(k kind) *Slot {
	if s != nil {
		s.work = k
	}
	return s
}

// For says for whom the goroutine computes from the next Tick on.
func (s *Slot) For(key any) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.key != key {
		s.turns.leave(s)
		s.key = key
	}
}

// Beside returns a slot of the same client for another goroutine, which has to rest it at its end.
func (s *Slot) Beside() *Slot {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return &Slot{turns: s.turns, work: s.work, key: s.key}
}

// Tick comes before each piece of work. It waits for a place if all are taken, and passes the place on if others should
// have it. If ctx ends first, it returns its cause.
func (s *Slot) Tick(ctx context.Context) error {
	if s == nil {
		return ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.ticks.Add(1)
	if s.hasPlace.Load() {
		if !s.turns.Wanted() {
			return nil
		}
		now := time.Now()
		if now.Before(s.till) && s.work != spare {
			return nil
		}
		s.till = now.Add(slice)
		s.turns.passOn(s, now.Sub(s.from) >= long)
		if s.hasPlace.Load() {
			return nil
		}
	}
	if err := s.turns.take(ctx, s); err != nil {
		return err
	}
	s.from = time.Now()
	s.till = s.from.Add(slice)
	return nil
}

// Rest gives the place back, before the goroutine waits for anything. It may be called more than once.
func (s *Slot) Rest() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hasPlace.Load() {
		s.turns.leave(s)
	}
}

// With returns a context whose work is done in a slot, which may be nil.
func With(ctx context.Context, s *Slot) context.Context { return pace.With(ctx, s) }

// Of returns the slot of a context, or nil.
func Of(ctx context.Context) *Slot {
	s, _ := pace.Of(ctx).(*Slot)
	return s
}
