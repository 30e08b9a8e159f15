package remote

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/chaski-eo/chaski/internal/heaps"
	"github.com/chaski-eo/chaski/source"
)

// hostState holds the retry budget of one server, its requests in flight, and what is known of the link to it.
type hostState struct {
	mu       sync.Mutex
	retries  float64 // how many requests may be repeated
	copies   float64 // how many late ones may be sent once more
	link     link
	most     int      // simultaneous requests
	requests int      // in flight
	bytes    int64    // that these have not brought yet
	batches  []*batch // with requests in flight, the oldest first
	waiting  heaps.Heap[*requestFlight]
	count    int64 // requests so far
}

// batch counts the requests in flight with one order, and the bytes that they have not brought yet.
type batch struct {
	order    int64
	requests int
	unsent   int // requests that wait for their connections
	bytes    int64
}

// requestFlight is one request.
type requestFlight struct {
	host  *hostState
	batch *batch // nil while it waits
	order int64  // of its batch; the lowest first
	count int64  // among those of one batch
	rest  int64  // bytes that have not arrived
	sent  bool
	ready chan struct{}
	place int // in hostState.waiting; heaps.Outside once it is in flight
}

// Before implements heaps.Item.
func (f *requestFlight) Before(o *requestFlight) bool {
	return cmp.Or(cmp.Compare(f.order, o.order), cmp.Compare(f.count, o.count)) < 0
}

// Place implements heaps.Item.
func (f *requestFlight) Place() *int { return &f.place }

// maxHosts limits the hosts that are counted, because URIs of users may name any number. All
// further ones share a count.
const maxHosts = 1024

// hosts finds the host of a name.
type hosts struct {
	mu     sync.Mutex
	byName map[string]*hostState
}

func (h *hosts) get(name string, o *Options) *hostState {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byName == nil {
		h.byName = map[string]*hostState{}
	}
	if len(h.byName) >= maxHosts && h.byName[name] == nil {
		name = ""
	}
	if h.byName[name] == nil {
		h.byName[name] = &hostState{most: o.Concurrency, retries: float64(o.RetryBurst)}
	}
	return h.byName[name]
}

// worked records a request that brought all its bytes.
func (h *hostState) worked(o *Options) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.retries = min(h.retries+o.RetryShare, float64(o.RetryBurst))
	h.copies = min(h.copies+copyShare, copyBurst)
}

// mayRetry takes a retry of the budget, if one is left.
func (h *hostState) mayRetry() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.retries < 1 {
		return false
	}
	h.retries--
	return true
}

// enter waits until a request for n bytes may begin. Requests of older batches go first (source.WithOrder), so the
// link does not bring what is needed last. The caller must call leave.
func (h *hostState) enter(ctx context.Context, n int64) (*requestFlight, error) {
	h.mu.Lock()
	h.count++
	f := &requestFlight{host: h, order: source.Order(ctx), count: h.count, rest: n, ready: make(chan struct{})}
	h.waiting.Add(f)
	h.admit()
	h.mu.Unlock()
	select {
	case <-f.ready:
		return f, nil
	case <-ctx.Done():
	}
	h.mu.Lock()
	if f.place != heaps.Outside {
		h.waiting.Remove(f)
		h.mu.Unlock()
		return nil, ctx.Err()
	}
	h.mu.Unlock()
	f.leave()
	return nil, ctx.Err()
}

// admit lets waiting requests begin. It needs the lock. The last one may exceed the limit, so one request that is
// larger than it can begin.
//
// All answers share the link, so a request of a newer batch slows the oldest one down. It waits until what the oldest
// has in flight fills the link no longer than the new answer takes to begin. While the link's rate is not known, it
// also waits until the requests of the oldest are sent: hundreds of other connections would delay theirs.
func (h *hostState) admit() {
	for len(h.waiting) > 0 && h.requests < h.most {
		if h.requests > 0 && h.bytes >= h.link.limit() {
			h.link.hadWait = true
			return
		}
		if len(h.batches) > 0 && h.batches[0].order < h.waiting[0].order && h.batches[0].holdsUp(&h.link) {
			return
		}
		f := h.waiting[0]
		h.waiting.Remove(f)
		h.link.begin(time.Now(), h.requests)
		f.batch = h.batch(f.order)
		f.batch.requests++
		f.batch.unsent++
		f.batch.bytes += f.rest
		h.requests++
		h.bytes += f.rest
		close(f.ready)
	}
}

// maxHold is how long newer batches wait for a connection of the oldest one. An address may be dead, and a connection
// of a newer batch then serves the oldest one, too. TCP asks again after 1 s if its first packet is lost.
const maxHold = time.Second

// holdsUp reports whether newer batches begin no request, because the answers or connections of this one come first.
func (b *batch) holdsUp(l *link) bool {
	return b.bytes > l.full() || b.unsent > 0 && l.holds() == 0
}

// batch returns the batch with an order, added if none of its requests is in flight. It needs the lock.
func (h *hostState) batch(order int64) *batch {
	i, found := slices.BinarySearchFunc(h.batches, order, func(b *batch, order int64) int {
		return cmp.Compare(b.order, order)
	})
	if !found {
		h.batches = slices.Insert(h.batches, i, &batch{order: order})
	}
	return h.batches[i]
}

// wrote notes that the request is on its way to the server, or that newer batches have waited long enough for that.
func (f *requestFlight) wrote() {
	f.host.mu.Lock()
	defer f.host.mu.Unlock()
	f.markSent()
	f.host.admit()
}

// markSent counts the request as sent, once. It needs the lock.
func (f *requestFlight) markSent() {
	if !f.sent {
		f.sent = true
		f.batch.unsent--
	}
}

// answered notes how long the answer took to begin.
func (f *requestFlight) answered(trip time.Duration) {
	f.host.mu.Lock()
	defer f.host.mu.Unlock()
	f.host.link.answered(time.Now(), trip)
	f.markSent() // for backends that do not say it
	f.host.admit()
}

// brought notes n bytes of the body.
func (f *requestFlight) brought(n int) {
	h := f.host
	h.mu.Lock()
	defer h.mu.Unlock()
	h.link.brought(time.Now(), int64(n))
	known := min(int64(n), f.rest) // a wrong answer may bring more
	f.rest -= known
	f.batch.bytes -= known
	h.bytes -= known
	h.admit()
}

// leave ends the request.
func (f *requestFlight) leave() {
	h := f.host
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bytes -= f.rest
	f.batch.bytes -= f.rest
	f.rest = 0
	h.requests--
	f.markSent()
	if f.batch.requests--; f.batch.requests == 0 {
		h.batches = slices.DeleteFunc(h.batches, func(b *batch) bool { return b == f.batch })
	}
	h.admit()
}

// gap returns the gap of readers of the host: see source.Gapped.
func (h *hostState) gap() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.link.gap()
}
