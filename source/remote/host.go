package remote

import (
	"sync"

	"golang.org/x/sync/semaphore"
)

// host holds the retry budget and the limit of one server.
type host struct {
	slots *semaphore.Weighted // simultaneous requests

	mu      sync.Mutex
	retries float64 // how many requests may be repeated
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
		h.byName[name] = &host{slots: semaphore.NewWeighted(int64(o.Concurrency)), retries: float64(o.RetryBurst)}
	}
	return h.byName[name]
}

// worked records a request that brought all its bytes.
func (h *host) worked(o *Options) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.retries = min(h.retries+o.RetryShare, float64(o.RetryBurst))
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
