package remote

import (
	"cmp"
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/chaski-eo/chaski/source"
)

// host holds the retry budget of one server, its requests in flight, and what is known of the link to it.
type host struct {
	mu       sync.Mutex
	retries  float64 // how many requests may be repeated
	copies   float64 // how many late ones may be sent once more
	link     link
	most     int   // simultaneous requests
	requests int   // in flight
	bytes    int64 // that these have not brought yet
	waiting  waiting
	count    int64 // requests so far
}

// flight is one request.
type flight struct {
	host  *host
	order int64 // of its batch; the lowest first
	count int64 // among those of one batch
	rest  int64 // bytes that have not arrived
	ready chan struct{}
	place int // in host.waiting; -1 once it is in flight
}

// maxHosts limits the hosts that are counted, because URIs of users may name any number. All
// further ones share a count.
const maxHosts = 1024

// hosts finds the host of a name.
type hosts struct {
	mu     sync.Mutex
	byName map[string]*host
}

func (h *hosts) get(name string, o *Options) *host {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byName == nil {
		h.byName = map[string]*host{}
	}
	if len(h.byName) >= maxHosts && h.byName[name] == nil {
		name = ""
	}
	if h.byName[name] == nil {
		h.byName[name] = &host{most: o.Concurrency, retries: float64(o.RetryBurst)}
	}
	return h.byName[name]
}

// worked records a request that brought all its bytes.
func (h *host) worked(o *Options) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.retries = min(h.retries+o.RetryShare, float64(o.RetryBurst))
	h.copies = min(h.copies+copyShare, copyBurst)
}

// mayRetry takes a retry of the budget, if one is left.
func (h *host) mayRetry() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.retries < 1 {
		return false
	}
	h.retries--
	return true
}

// enter waits until a request for n bytes may begin. Requests of older batches go first (source.WithOrder), so that the
// link does not bring what is needed last. The caller must call leave.
func (h *host) enter(ctx context.Context, n int64) (*flight, error) {
	h.mu.Lock()
	h.count++
	f := &flight{host: h, order: source.Order(ctx), count: h.count, rest: n, ready: make(chan struct{})}
	heap.Push(&h.waiting, f)
	h.admit()
	h.mu.Unlock()
	select {
	case <-f.ready:
		return f, nil
	case <-ctx.Done():
	}
	h.mu.Lock()
	if f.place >= 0 {
		heap.Remove(&h.waiting, f.place)
		h.mu.Unlock()
		return nil, ctx.Err()
	}
	h.mu.Unlock()
	f.leave()
	return nil, ctx.Err()
}

// admit lets waiting requests begin. It needs the lock. The last one may exceed the limit, so that one request that is
// larger than it can begin.
func (h *host) admit() {
	for len(h.waiting) > 0 && h.requests < h.most {
		if h.requests > 0 && h.bytes >= h.link.limit() {
			h.link.hadWait = true
			return
		}
		f := heap.Pop(&h.waiting).(*flight)
		h.link.begin(time.Now(), h.requests)
		h.requests++
		h.bytes += f.rest
		close(f.ready)
	}
}

// answered notes how long the answer took to begin.
func (f *flight) answered(trip time.Duration) {
	f.host.mu.Lock()
	defer f.host.mu.Unlock()
	f.host.link.answered(time.Now(), trip)
}

// brought notes n bytes of the body.
func (f *flight) brought(n int) {
	h := f.host
	h.mu.Lock()
	defer h.mu.Unlock()
	h.link.brought(time.Now(), int64(n))
	known := min(int64(n), f.rest) // a wrong answer may bring more
	f.rest -= known
	h.bytes -= known
	h.admit()
}

// leave ends the request.
func (f *flight) leave() {
	h := f.host
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bytes -= f.rest
	f.rest = 0
	h.requests--
	h.admit()
}

// gap returns the gap of readers of the host: see source.Gapped.
func (h *host) gap() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.link.gap()
}

// waiting is a heap of requests, the next one first.
type waiting []*flight

func (w waiting) Len() int { return len(w) }
func (w waiting) Less(i, k int) bool {
	return cmp.Or(cmp.Compare(w[i].order, w[k].order), cmp.Compare(w[i].count, w[k].count)) < 0
}
func (w waiting) Swap(i, k int) {
	w[i], w[k] = w[k], w[i]
	w[i].place, w[k].place = i, k
}

// Push implements heap.Interface.
func (w *waiting) Push(x any) {
	f := x.(*flight)
	f.place = len(*w)
	*w = append(*w, f)
}

// Pop implements heap.Interface.
func (w *waiting) Pop() any {
	last := len(*w) - 1
	f := (*w)[last]
	(*w)[last] = nil
	*w = (*w)[:last]
	f.place = -1
	return f
}
