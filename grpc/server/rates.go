package server

import (
	"cmp"
	"context"
	"maps"
	"sync"
	"time"
)

const (
	// longestDebt bounds the delay that one message adds, so that the sum of many does not overflow.
	longestDebt = 24 * time.Hour
	// manyDebts is how many clients may have gone with a debt before those that are over are forgotten.
	manyDebts = 1024
)

// rates bound the bytes per second sent to each client. Sent bytes delay the next answer. An answer that has begun is
// not delayed, because it holds memory and a place that others may wait for.
type rates struct {
	each int64 // bytes a second of clients whose token has no rate; 0: any

	mu   sync.Mutex
	free map[clientID]time.Time // when the next answer may begin
}

func newRates(each int64) *rates { return &rates{each: each, free: map[clientID]time.Time{}} }

// wait waits until an answer to a client may begin, or returns the cause if ctx ends before.
func (r *rates) wait(ctx context.Context, id clientID) error {
	for {
		left := r.left(id)
		if left <= 0 {
			return nil
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C: // another answer may have been sent meanwhile
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

// left returns for how long the next answer to a client has to wait.
func (r *rates) left(id clientID) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	when, ok := r.free[id]
	if !ok {
		return 0
	}
	left := time.Until(when)
	if left <= 0 {
		delete(r.free, id)
	}
	return left
}

// spent counts n bytes that a client was sent. most is the rate of its token, 0 if it has none.
func (r *rates) spent(id clientID, most int64, n int) {
	rate := cmp.Or(most, r.each)
	if rate == 0 || n == 0 {
		return
	}
	debt := time.Duration(min(float64(n)/float64(rate)*float64(time.Second), float64(longestDebt)))
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	when, ok := r.free[id]
	if !ok && len(r.free) >= manyDebts {
		maps.DeleteFunc(r.free, func(_ clientID, t time.Time) bool { return !t.After(now) })
	}
	if when.Before(now) {
		when = now
	}
	r.free[id] = when.Add(debt)
}
