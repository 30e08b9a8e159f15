package server

import (
	"maps"
	"time"

	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/crash"
)

// keptFor is for how long a dataset stays open although others need memory and it has no users: after its last
// batch, if a stream takes batches from it, and after a client has described it. Otherwise, as long as others wait
// for memory, every dataset would be closed between the Describe and the first ticket of its client, which would open
// it again and again without getting a batch. It is less than the 15 s that a table waits for memory to grow
// (budget), so the datasets of clients that pause are closed for it, and many times a round trip.
const keptFor = 4 * time.Second

// Reclaim implements budget.Holder: it closes the dataset that nobody has used for longest, but none that a client is
// about to use. Datasets of streams are closed only for other datasets and reads, and last.
func (s *engines) Reclaim(l budget.Level) (more bool) {
	if l < budget.Closed {
		return false
	}
	s.mu.Lock()
	now := time.Now()
	var next time.Time // when a dataset is held no more
	idle := s.longestIdle(func(unused *datasetEntry) bool {
		if l < budget.Kept && unused.streams > 0 {
			return false
		}
		until := s.heldUntil(unused)
		held := until.After(now)
		if held && (next.IsZero() || until.Before(next)) {
			next = until
		}
		return !held
	})
	if idle == nil && !next.IsZero() {
		s.offerIn(next.Sub(now))
	}
	close := s.remove(idle, nil)
	s.mu.Unlock()
	for _, unused := range close {
		crash.Report(s.options.Logger, crash.Call(func() error { s.close(unused); return nil }))
	}
	return idle != nil
}

// offerIn lets requests that wait then ask again. It needs the lock.
func (s *engines) offerIn(d time.Duration) {
	if s.closed {
		return
	}
	if s.offerTimer == nil {
		s.offerTimer = time.AfterFunc(d, s.options.Loader.Budget.Offer)
	} else {
		s.offerTimer.Reset(d)
	}
}

// heldUntil returns until when a dataset without users keeps its memory. It needs the lock.
func (s *engines) heldUntil(e *datasetEntry) (t time.Time) {
	if e.streams > 0 {
		t = e.idle
	}
	if e.awaitsUser && e.opened.After(t) {
		t = e.opened
	}
	for _, ticket := range s.expectations {
		if ticket.of == e && ticket.since.After(t) {
			t = ticket.since
		}
	}
	return t.Add(keptFor)
}

// expectation is a ticket that a client is expected to send since it has described a dataset.
type expectation struct {
	of    *datasetEntry
	since time.Time
}

// expect says that a client has described e and is expected to send a ticket. It is expected for one dataset only: who
// describes one after the other does not hold all of them.
func (s *engines) expect(id clientID, e *datasetEntry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(s.expectations, func(_ clientID, t expectation) bool { return now.Sub(t.since) >= keptFor })
	s.expectations[id] = expectation{e, now}
}

// keep says that a stream of a client takes batches from e, and from old no more. Both may be nil.
func (s *engines) keep(id clientID, e, old *datasetEntry) {
	s.mu.Lock()
	idle := false
	if e != nil {
		e.streams++
		if s.expectations[id].of == e {
			delete(s.expectations, id)
		}
	}
	if old != nil {
		old.streams--
		idle = old.streams == 0 && old.users == 0
	}
	s.mu.Unlock()
	if idle {
		s.rest(old)
		// Requests that wait need to know, since they may have this one closed.
		s.options.Loader.Budget.Offer()
	}
}
