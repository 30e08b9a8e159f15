package remote

import (
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// host holds the retry budget, latencies and limits of one server.
type host struct {
	slots *semaphore.Weighted // simultaneous requests

	mu      sync.Mutex
	retries bucket
	hedges  bucket
	times   [128]time.Duration // to the first byte, of the latest requests
	n       int                // number of times ever recorded
	delay   time.Duration      // after which a request is hedged; 0 for never
}

// bucket is a token bucket.
type bucket struct{ tokens, max float64 }

func (b *bucket) add(n float64) { b.tokens = min(b.tokens+n, b.max) }

func (b *bucket) take() bool {
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// hedgeBurst is the most hedges that a host may save up, so that a sudden slowness does not double
// its load.
const hedgeBurst = 8

func newHost(o *Options) *host {
	return &host{
		slots:   semaphore.NewWeighted(int64(o.Concurrency)),
		retries: bucket{float64(o.RetryBurst), float64(o.RetryBurst)},
		hedges:  bucket{0, hedgeBurst},
	}
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
		h.byName[name] = newHost(o)
	}
	return h.byName[name]
}

// minTimes is the number of recorded times from which their quantile is meaningful.
const minTimes = 32

// answered records the time to the first byte of a response.
func (h *host) answered(d time.Duration, o *Options) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.times[h.n%len(h.times)] = d
	h.n++
	h.hedges.add(max(o.HedgeShare, 0))
	if h.n < minTimes || h.n%16 != 0 && h.n != minTimes || o.HedgeShare < 0 {
		return
	}
	known := slices.Sorted(slices.Values(h.times[:min(h.n, len(h.times))]))
	pos := min(int(o.HedgeAfter*float64(len(known))), len(known)-1)
	h.delay = max(known[pos], o.HedgeMin)
}

// worked records a request that brought all its bytes.
func (h *host) worked(o *Options) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.retries.add(o.RetryShare)
}

// mayRetry takes a token of the retry budget.
func (h *host) mayRetry() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.retries.take()
}

// hedgeDelay returns how long to wait for a response before a second request, or 0 for no second
// request.
func (h *host) hedgeDelay() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.hedges.tokens < 1 {
		return 0
	}
	return h.delay
}

// mayHedge takes a token, and a slot for a request if one is free.
func (h *host) mayHedge() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.hedges.tokens < 1 || !h.slots.TryAcquire(1) {
		return false
	}
	return h.hedges.take()
}
