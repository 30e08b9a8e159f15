package resources

import (
	"sync"
	"sync/atomic"
	"time"
)

// Remote files are read by more goroutines than decode, because a unit of work spends most of its time
// waiting for answers. Options.Fetchers goroutines do the units. Each reads its byte ranges, and is one of
// Options.Workers decoders while it decodes. Tickets and their rows are worked on in order, so this
// reads ahead in the order of the samples, as far as the memory of batches allows.

// Decoders bounds how many goroutines decode at a time, in all engines and reads that share it: the same number for
// each client (Caller.Client), so one with many datasets leaves processors to the others. nil bounds nothing. It is
// safe for concurrent use.
type Decoders struct {
	most int
	busy atomic.Int64 // of all clients

	mu      sync.Mutex
	clients map[any]*clientDecoders
	decoded time.Duration // that goroutines have decoded, until since
	since   time.Time
	aside   time.Duration // that Aside has counted
}

// clientDecoders are the places of one client.
type clientDecoders struct {
	places chan struct{}
	users  int // that have a place or wait for one
}

// keptClients is how many clients may be known before those that decode nothing are forgotten.
const keptClients = 64

// NewDecoders returns n decoders for each client.
func NewDecoders(n int) *Decoders { return &Decoders{most: n, clients: map[any]*clientDecoders{}} }

// Begin waits until one more goroutine of a client may decode. The caller must call End when it has decoded, and must
// not call Begin again before.
func (d *Decoders) Begin(client any) {
	if d == nil {
		return
	}
	d.mu.Lock()
	entry := d.clients[client]
	if entry == nil {
		entry = &clientDecoders{places: make(chan struct{}, d.most)}
		d.clients[client] = entry
	}
	entry.users++
	d.mu.Unlock()
	entry.places <- struct{}{}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.count(1)
}

// count counts the time until now, and n more goroutines that decode from now on. It needs the lock.
func (d *Decoders) count(n int64) {
	now := time.Now()
	d.decoded += time.Duration(d.busy.Load()) * now.Sub(d.since)
	d.since = now
	d.busy.Add(n)
}

// End ends what Begin began.
func (d *Decoders) End(client any) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.count(-1)
	entry := d.clients[client]
	<-entry.places
	if entry.users--; entry.users == 0 && len(d.clients) > keptClients {
		delete(d.clients, client)
	}
}

// AllBusy reports whether as many goroutines decode as one client may have.
func (d *Decoders) AllBusy() bool { return d != nil && d.busy.Load() >= int64(d.most) }

// MayAside reports whether other work may go on beside the decoders: not all of them are busy, or such work has taken
// at most share of their time. The caller must give the time that it takes to Aside.
func (d *Decoders) MayAside(share float64) bool {
	if !d.AllBusy() {
		return true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.count(0)
	return d.aside <= time.Duration(share*float64(d.decoded))
}

// Aside counts the time of other work, as far as all decoders are busy.
func (d *Decoders) Aside(t time.Duration) {
	if !d.AllBusy() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.aside += t
}

// Readers returns how many goroutines to start so that n decode: n for local files, Options.Fetchers for
// remote ones, if that is more. It sets the decoders that these need: Options.Decoders, or else n for remote ones.
func (o *Options) Readers(n int, remote bool) int {
	o.waits = remote
	// Of no more goroutines than n, all may decode.
	if !remote || o.Fetchers <= n {
		return n
	}
	if o.Decoders == nil {
		o.Decoders = NewDecoders(n)
	}
	return o.Fetchers
}

// Waits reports whether goroutines wait for servers before they decode, as Readers has found.
func (o *Options) Waits() bool { return o.waits }

// MostFetchers returns how many goroutines read remote files if each needs little memory: more than Fetchers if that is
// the default, else 0.
func (o *Options) MostFetchers() int { return o.most }
