package remote

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	// copyShare is how many copies of late requests a host gets for each request, so they are no load on it.
	copyShare = 0.02
	copyBurst = 8
	// leastLate is when a request is late at the earliest: a machine with other work takes that long now and then.
	leastLate = 250 * time.Millisecond
)

// ask is Get of the backend. A request whose answer is late is sent once more, and the first answer counts: stores have
// single requests that take seconds, and a batch waits for its slowest. over ends the request after its body is read.
func (o *Opener) ask(ctx context.Context, f *requestFlight, uri string, r Range,
	tag Tag) (a *Answer, over func(), err error) {
	first, endFirst := context.WithCancel(ctx)
	second, endSecond := context.WithCancel(ctx)
	over = func() { endFirst(); endSecond() }
	var answered atomic.Bool // by one of them; the answer of the other is dropped
	var copied *Answer
	done := make(chan struct{})
	timer := time.AfterFunc(f.host.late(), func() {
		defer close(done)
		if !f.host.mayCopy() {
			return
		}
		o.counters.requests.Add(1)
		answer, err := o.backend.Get(second, uri, r, tag)
		switch {
		case err != nil:
		case answered.CompareAndSwap(false, true):
			copied = answer
			endFirst()
		default:
			_ = answer.Body.Close() // nobody reads it
		}
	})
	begun := time.Now()
	a, err = o.backend.Get(first, uri, r, tag)
	if err == nil && answered.CompareAndSwap(false, true) {
		f.answered(time.Since(begun))
		if !timer.Stop() {
			endSecond()
		}
		return a, over, nil
	}
	if err == nil {
		_ = a.Body.Close() // the copy was faster
	}
	if !timer.Stop() {
		if <-done; copied != nil {
			return copied, over, nil
		}
	}
	return nil, over, err
}

// late returns after which time an answer is late: the mean and four deviations, as TCP has it (RFC 6298).
func (h *hostState) late() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return max(h.link.mean+4*h.link.deviation, leastLate)
}

// mayCopy takes a copy of the budget, if one is left.
func (h *hostState) mayCopy() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.copies < 1 {
		return false
	}
	h.copies--
	return true
}
