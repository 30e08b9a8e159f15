package remote

import (
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// host is what is counted for one server.
type host struct {
	slots *semaphore.Weighted // requests at a time

	mu      sync.Mutex
	retries bucket
	hedges  bucket
	times   [128]time.Duration // to the first byte, of the last requests
	n       int                // of times ever
	delay   time.Duration      // after which a request is hedged, 0: never
}

// bucket holds tokens.
type bucket struct{ tokens, max float64 }

func (b *bucket) add(n float64) { b.tokens = min(b.tokens+n, b.max) }

func (b *bucket) take() bool {
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// hedgeBurst is how many hedges a host may have saved up.
const hedgeBurst = 8

func newHost(o *Options) *host {
	return &host{
		slots:   semaphore.NewWeighted(int64(o.Concurrency)),
		retries: bucket{float64(o.RetryBurst), float64(o.RetryBurst)},
		hedges:  bucket{0, hedgeBurst},
	}
}

// maxHosts bounds what is kept of hosts; all further ones count as one.
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

// minTimes is how many times must be known before a request is hedged.
const minTimes = 32

// answered notes how long the first byte of an answer took.
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
	at := min(int(o.HedgeAfter*float64(len(known))), len(known)-1)
	h.delay = max(known[at], o.HedgeMin)
}

// worked notes a request that brought its bytes.
func (h *host) worked(o *Options) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.retries.add(o.RetryShare)
}

// mayRetry takes a token of the budget.
func (h *host) mayRetry() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.retries.take()
}

// hedgeDelay returns how long to wait for an answer before asking again, 0 for ever.
func (h *host) hedgeDelay() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.hedges.tokens < 1 {
		return 0
	}
	return h.delay
}

// mayHedge takes a token, and a place among the requests if one is free.
func (h *host) mayHedge() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.hedges.tokens < 1 || !h.slots.TryAcquire(1) {
		return false
	}
	return h.hedges.take()
}
