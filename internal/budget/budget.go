// Package budget bounds the memory that a process takes for clients and files: batches, reads, openings, tables.
//
// Memory is charged before it is allocated, in one of three ways:
//
//   - Open is the first charge of a request. It waits in a queue, first come, first served. Requests hold nothing
//     while they wait there, so they cannot wait for each other. AcquireBatch comes before all of them: a batch is
//     small and soon gone, and would otherwise wait for reads of 512 MiB one after the other.
//   - Account.Grow is for memory whose size is only known later, such as the rows of a table. Its caller holds memory
//     already, so it comes before the queue. One account at a time waits, for growFor at most: if several wait for each
//     other, the first one is refused then, and gives its memory to the others.
//   - TryAcquire is for memory that makes things faster. It takes what is free if nobody waits.
//
// An engine takes part as a Holder. It has a floor of its own, charged when it is opened, that is enough for one batch
// after the other. It takes more than the floor by TryAcquire only, and gives that back when others wait (Reclaim).
//
// A nil Budget and a nil Account bound nothing.
package budget

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chaski-eo/chaski/fault"
)

// Flag is the name of the flag that sets the limit, for errors.
const Flag = "--memory-total"

const (
	// growthShare is the part of the limit that is kept for accounts that grow: an eighth. A table
	// of a million rows takes about 80 MB, which is that part of a limit of 640 MB.
	growthShare = 8
	// maxWaiters bounds the queue. Each waiter is a request of a few KiB; a server has at most 1,024 streams.
	maxWaiters = 1024
	// waitFor is how long a request waits. It must end, because clients may keep their batches for any time. A minute
	// is several times as long as a slow disk needs for 1 GiB.
	waitFor = time.Minute
	// growFor is how long an account waits to grow, with the memory that it has. It is three times as long as a server
	// waits for a client that does not read.
	growFor = 15 * time.Second
)

// Holder is memory that can be given back.
type Holder interface {
	// Reclaim gives back memory that is not needed at a Level. It is called without locks of the budget, and may call
	// Release. It reports whether another call at this level would give more.
	Reclaim(l Level) (more bool)
	// Freed is called when there is memory and nobody waits for it.
	Freed()
}

// Level says how much a holder gives back. Lower levels come first.
type Level int

// Levels of Reclaim.
const (
	Unused Level = iota // memory without an owner: the idle memory of engines without readers
	Idle                // idle memory that the next batch would use
	Closed              // things that can be opened again: engines without users
	Kept                // engines that will be used again soon
)

// Budget bounds memory. It is safe for concurrent use.
type Budget struct {
	limit  int64
	growth int64 // bytes of limit that only accounts that grow can take
	queued time.Duration
	grow   time.Duration

	pressure atomic.Int64  // requests that wait for memory that anybody may have; changed with mu
	mayGrow  chan struct{} // has one element unless an account waits to grow

	mu      sync.Mutex
	used    int64
	batches []*budgetWaiter // requests for batches that wait, the oldest first
	queue   []*budgetWaiter // other requests that wait, the oldest first
	growing *budgetWaiter   // of the account that waits to grow; nil: none
	holders []Holder
	offer   chan struct{} // closed and replaced when a holder has more to give
}

// budgetWaiter is a request that waits: in the queue, or of an account that grows.
type budgetWaiter struct {
	account *Account // that grows; nil in the queue
	n       int64
	since   time.Time
	reclaim chan struct{} // closed once holders are to give memory for it
	ready   chan struct{} // closed once n is charged
}

// New returns a budget of limit bytes.
func New(limit int64) *Budget {
	made := &Budget{limit: limit, growth: limit / growthShare, queued: waitFor, grow: growFor,
		mayGrow: make(chan struct{}, 1), offer: make(chan struct{})}
	made.mayGrow <- struct{}{}
	return made
}

// Limit returns the bytes of the budget, 0 for no bound.
func (b *Budget) Limit() int64 {
	if b == nil {
		return 0
	}
	return b.limit
}

// Used returns the bytes that are charged.
func (b *Budget) Used() int64 {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Waiting returns how many requests wait for memory that anybody may have.
func (b *Budget) Waiting() int64 {
	if b == nil {
		return 0
	}
	return b.pressure.Load()
}

// Waited returns for how long the request that waits longest has waited for memory, 0 if none waits.
func (b *Budget) Waited() time.Duration {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var longest time.Duration
	look := func(one *budgetWaiter) { longest = max(longest, time.Since(one.since)) }
	for _, waiters := range [...][]*budgetWaiter{b.batches, b.queue} {
		if len(waiters) > 0 {
			look(waiters[0])
		}
	}
	if b.growing != nil {
		look(b.growing)
	}
	return longest
}

// Join adds a holder. leave removes it.
func (b *Budget) Join(h Holder) (leave func()) {
	if b == nil {
		return func() {}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	// A new list, since reclaim and change go through the old one without the lock.
	b.holders = append(slices.Clone(b.holders), h)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.holders = slices.DeleteFunc(slices.Clone(b.holders), func(o Holder) bool { return o == h })
	}
}

// common returns how many bytes are kept for nothing.
func (b *Budget) common() int64 { return b.limit - b.growth }

// short reports whether n bytes do not fit into what is common. It needs the lock.
func (b *Budget) short(n int64) bool { return n > b.common()-b.used }

// TryAcquire charges n bytes if they are free and nobody waits.
func (b *Budget) TryAcquire(n int64) bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pressure.Load() > 0 || b.short(n) {
		return false
	}
	b.used += n
	return true
}

// Acquire charges n bytes. It waits in the queue until they are free. The caller must hold nothing that other requests
// may wait for: see the package's comment.
func (b *Budget) Acquire(ctx context.Context, n int64) error {
	if b == nil {
		return nil
	}
	return b.acquire(ctx, n, &b.queue)
}

// AcquireBatch is Acquire for the memory of a batch.
func (b *Budget) AcquireBatch(ctx context.Context, n int64) error {
	if b == nil {
		return nil
	}
	return b.acquire(ctx, n, &b.batches)
}

// acquire charges n bytes, for which it waits in a list of waiters.
func (b *Budget) acquire(ctx context.Context, n int64, list *[]*budgetWaiter) error {
	if n > b.common() {
		return fault.New(fault.Limit, "memory", "%d bytes are needed at once, and %s is %d, with "+
			"%d kept for tables that grow: raise it, or ask for less", n, Flag, b.limit, b.growth)
	}
	b.mu.Lock()
	if len(b.batches) == 0 && (list == &b.batches || len(b.queue) == 0) && !b.short(n) {
		b.used += n
		b.mu.Unlock()
		return nil
	}
	if len(*list) >= maxWaiters {
		b.mu.Unlock()
		return fault.New(fault.Limit, "memory", "%d requests wait for memory of %s, no more are taken",
			maxWaiters, Flag)
	}
	waiter := newWaiter(n)
	*list = append(*list, waiter)
	b.serve()
	b.mu.Unlock()
	late, err := b.wait(ctx, waiter, b.queued)
	if late {
		return fault.New(fault.Limit, "memory", "%d bytes of %s (%d) were not free for %v: "+
			"raise it, or ask for less at a time", n, Flag, b.limit, b.queued)
	}
	return err
}

func newWaiter(n int64) *budgetWaiter {
	return &budgetWaiter{n: n, since: time.Now(), reclaim: make(chan struct{}), ready: make(chan struct{})}
}

// wait waits until a request has its memory. late says that it has waited for too long.
func (b *Budget) wait(ctx context.Context, w *budgetWaiter, patience time.Duration) (late bool, err error) {
	if isClosed(w.ready) {
		return false, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go b.collect(ctx, w)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-w.ready:
		return false, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		late = true
	}
	b.leave(w)
	return late, err
}

// collect asks holders for the memory of w once it comes next, and again whenever one has more to give, until ctx
// ends. The caller of Acquire does not do it, because it may be a holder itself: a holder that ends waits for its own
// calls.
func (b *Budget) collect(ctx context.Context, w *budgetWaiter) {
	// Before holders are asked, otherwise an offer in the meantime would be missed.
	offered := b.offers()
	select {
	case <-ctx.Done():
		return
	case <-w.reclaim:
	}
	for {
		b.reclaim(func() bool { return isClosed(w.ready) || ctx.Err() != nil || !b.wants(w) })
		select {
		case <-ctx.Done():
			return
		case <-offered:
		}
		offered = b.offers()
	}
}

// wants reports whether there is too little memory for a request.
func (b *Budget) wants(w *budgetWaiter) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return w.account == nil || b.lacks(w.n)
}

// offers returns a channel that is closed when a holder has more to give.
func (b *Budget) offers() chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.offer
}

// Offer says that a holder has more to give than before. It never waits, so it may be called under locks that
// holders need.
func (b *Budget) Offer() {
	if b == nil || b.pressure.Load() == 0 {
		return // who comes later asks the holders first
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.offer)
	b.offer = make(chan struct{})
}

// leave ends the wait of w. If w was served in the meantime, it gives the memory back.
func (b *Budget) leave(w *budgetWaiter) {
	b.change(func() {
		switch {
		case b.growing == w:
			b.growing = nil
		case w.account != nil:
			b.used -= w.account.drop(w.n)
		case !dequeue(&b.batches, w) && !dequeue(&b.queue, w):
			b.used -= w.n
		}
	})
}

// dequeue takes w out of a list of waiters, and reports whether it was there.
func dequeue(list *[]*budgetWaiter, w *budgetWaiter) bool {
	i := slices.Index(*list, w)
	if i >= 0 {
		*list = slices.Delete(*list, i, i+1)
	}
	return i >= 0
}

// serve gives memory to the account that grows, which holds what others may need, then to batches, and then to the
// queue: while the first of these has too little room, nobody behind it is served. It needs the lock.
func (b *Budget) serve() {
	if w := b.growing; w != nil && !b.lacks(w.n) {
		b.charge(w.account, w.n)
		b.growing = nil
		close(w.ready)
	}
	pressure := len(b.batches) + len(b.queue)
	for _, list := range [...]*[]*budgetWaiter{&b.batches, &b.queue} {
		for len(*list) > 0 && !b.short((*list)[0].n) {
			w := (*list)[0]
			b.used += w.n
			dequeue(list, w)
			close(w.ready)
			pressure--
		}
		if len(*list) > 0 {
			(*list)[0].collect()
			break
		}
	}
	if b.growing != nil {
		pressure++
		b.growing.collect()
	}
	b.pressure.Store(int64(pressure))
}

// collect says that holders are to give memory. It needs the lock of the budget.
func (w *budgetWaiter) collect() {
	if !isClosed(w.reclaim) {
		close(w.reclaim)
	}
}

// Release gives n bytes back. The caller must not hold a lock that a Holder needs.
func (b *Budget) Release(n int64) {
	if b != nil && n != 0 {
		b.change(func() { b.used -= n })
	}
}

// change gives memory back by f, which it calls with the lock, and tells the holders if nobody waits for it.
func (b *Budget) change(f func()) {
	b.mu.Lock()
	f()
	if b.used < 0 {
		b.mu.Unlock()
		panic("budget: more is given back than was taken")
	}
	b.serve()
	holders := b.holders
	b.mu.Unlock()
	if b.pressure.Load() > 0 {
		return
	}
	for _, h := range holders {
		h.Freed()
	}
}

// reclaim asks all holders to give memory back, level by level, until enough says so.
func (b *Budget) reclaim(enough func() bool) {
	b.mu.Lock()
	holders := b.holders
	b.mu.Unlock()
	for l := range Kept + 1 {
		for _, holder := range holders {
			for goesOn := true; goesOn; {
				if enough() {
					return
				}
				goesOn = holder.Reclaim(l)
			}
		}
	}
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
