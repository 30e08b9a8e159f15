package turns

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Slice is for how long a goroutine keeps its place although others wait. It is a hundred times what passing a place on
// takes (about 10 µs, with the change of goroutines), and a tenth of what decoding a batch of 16 chips takes.
const Slice = time.Millisecond

// long is for how long a goroutine keeps its place although others of the same client wait. The client gains nothing
// from a change, so it is rare; but a question that computes for an hour must not hold up a stream of its own client.
const long = 50 * Slice

// Slot is the place of one goroutine that computes. It has a place from a Tick until Rest. nil, the slot of a nil
// *Turns, bounds nothing. It is safe for concurrent use, but then the goroutines share its place.
type Slot struct {
	turns *Turns
	work  kind
	ticks atomic.Uint64
	away  atomic.Bool // unstick has given the place to others; set with the lock of turns
	seen  uint64      // ticks when unstick looked; needs the lock of turns

	mu   sync.Mutex
	key  any
	also func() []any // clients that wait behind this one; nil for none
	has  any          // who pays for the place, while held
	held bool
	from time.Time // when it got the place
	till time.Time // others that wait do not get the place before
}

// Slot returns a slot without a place, for a client.
func (t *Turns) Slot(key any) *Slot {
	if t == nil {
		return nil
	}
	return &Slot{turns: t, key: key}
}

// kind returns the kind of work; that of places without a slot is other.
func (s *Slot) kind() kind {
	if s == nil {
		return other
	}
	return s.work
}

// Urgent returns s, whose work is urgent from now on: see the package's comment. It must not have a place yet.
func (s *Slot) Urgent() *Slot { return s.as(urgent) }

// Halved returns s, whose work has at most half of the places from now on, even while nobody else wants them: a piece
// of it may take so long that others would wait for it. It must not have a place yet.
func (s *Slot) Halved() *Slot { return s.as(halved) }

func (s *Slot) as(k kind) *Slot {
	if s != nil {
		s.work = k
	}
	return s
}

// For says for whom the goroutine computes from the next Tick on. also, if it is not nil, returns the clients that wait
// behind that one, as for Take.
func (s *Slot) For(key any, also func() []any) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key, s.also = key, also
}

// Beside returns a slot of the same client for another goroutine, which has to rest it at its end.
func (s *Slot) Beside() *Slot {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return &Slot{turns: s.turns, work: s.work, key: s.key, also: s.also}
}

// Tick comes before each piece of work. It waits for a place if all are taken, and passes the place on if others should
// have it. If ctx ends first, it returns its error.
func (s *Slot) Tick(ctx context.Context) error {
	if s == nil {
		return ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	s.ticks.Add(1)
	if s.away.Load() || s.has != s.key { // the following work may count for another client
		s.rest()
	}
	if s.held && s.stays() {
		return nil
	}
	if err := s.take(ctx); err != nil {
		return err
	}
	now := time.Now()
	s.has, s.held, s.from, s.till = s.key, true, now, now.Add(Slice)
	return nil
}

// stays reports whether the slot keeps its place, and gives the place back otherwise. It needs the lock.
func (s *Slot) stays() bool {
	if !s.turns.Wanted() {
		return true
	}
	now := time.Now()
	if now.Before(s.till) {
		return true
	}
	s.till = now.Add(Slice)
	s.held = !s.turns.passOn(s, now.Sub(s.from) >= long)
	return s.held
}

func (s *Slot) take(ctx context.Context) error {
	if s.turns.try(s.key, s) {
		return nil
	}
	var also []any
	if s.also != nil {
		also = s.also()
	}
	return s.turns.take(ctx, nil, s.key, s, also)
}

// Rest gives the place back, before the goroutine waits for anything.
func (s *Slot) Rest() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rest()
}

func (s *Slot) rest() {
	if s.held {
		s.turns.leave(s)
		s.held = false
	}
}

type slotKey struct{}

// With returns a context whose work is done in a slot, which may be nil.
func With(ctx context.Context, s *Slot) context.Context { return context.WithValue(ctx, slotKey{}, s) }

// Of returns the slot of a context, or nil.
func Of(ctx context.Context) *Slot {
	s, _ := ctx.Value(slotKey{}).(*Slot)
	return s
}

// Tick calls Tick of the slot of ctx.
func Tick(ctx context.Context) error { return Of(ctx).Tick(ctx) }

// Rest calls Rest of the slot of ctx.
func Rest(ctx context.Context) { Of(ctx).Rest() }
