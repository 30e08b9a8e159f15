// Package budget bounds the memory that a process takes for clients and files: batches, reads, openings, tables.
//
// Memory is charged before it is allocated, in one of three ways:
//
//   - Open is the first charge of a request. It waits its turn in a queue, which clients share (queue), and is the only
//     call that does: whoever waits in the queue holds nothing, so in no order can two of them wait for each other.
//   - Account.Grow is for memory whose size is only known later, such as the rows of a table. Its caller holds memory
//     already, so it must not wait for memory of others that wait for it. It takes what is free. If that is not enough,
//     one account at a time may take from a reserve that no other call can take from. Accounts that wait for each other
//     are found and refused at once (lane), and the account with the reserve waits for nobody for long.
//   - TryAcquire is for memory that makes things faster. It takes what is free if nobody waits.
//
// Seat is Open for the first batch of a client, which must not wait behind requests that are a hundred times as large:
// a part of the budget is kept for it.
//
// An engine takes part as a Holder. It has a floor of its own, charged when it is opened, that is enough for one batch
// after the other. It takes more than the floor by TryAcquire only, and gives that back when others wait (Reclaim).
//
// A nil Budget and a nil Account bound nothing.
package budget

import (
	"container/list"
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/turns"
)

// Flag is the name of the flag that sets the limit, for errors.
const Flag = "--memory-total"

const (
	// reserveShare is the part of the limit that is kept for an account that grows: an eighth. A table of a million
	// rows takes about 80 MB, which is the reserve of a limit of 640 MB.
	reserveShare = 8
	// seatsShare is the part of the limit that is kept for seats: a sixteenth. Of 700 MiB it is 44 MiB, the first
	// batches of seven clients with 16 chips of 6 bands, 128 rows and 128 columns of float32 each, which take 6 MiB.
	seatsShare = 16
	// asksShare bounds by how much questions grow together: 1/asksShare of the limit, half of it. From a limit of 700
	// MiB on, the rest has room for the reserves and five datasets: each takes 4 MiB for its opening, 1/32 of the limit
	// for its caches, and 1/64 for its batches. A question begins with a few MiB.
	asksShare = 2
	// maxWaiters bounds the queue. Each waiter is a request of a few KiB; a server has at most 1,024 streams.
	maxWaiters = 1024
	// waitFor is how long a request waits. It must end, because clients may keep their batches for any time. A minute
	// is several times as long as a slow disk needs for 1 GiB.
	waitFor = time.Minute
	// lookEvery is how often garbage is collected while a request waits. A collection takes some 10 ms, a hundredth of
	// it.
	lookEvery = time.Second
	// growFor is how long the account with the reserve waits for others to end, such as a read that is being sent.
	growFor = 5 * time.Second
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
	Kept                // engines that will be used again soon; questions do not reclaim them
)

// Budget bounds memory. It is safe for concurrent use.
type Budget struct {
	limit   int64
	reserve int64 // bytes of limit that only an account with the turn can take
	seats   int64 // bytes of limit that only first seats can take
	asks    int64 // bytes of limit that questions can take as they grow; an eighth of it is their reserve
	queued  time.Duration
	grow    time.Duration
	look    time.Duration

	finding sync.Mutex // held while find collects
	found   time.Time  // when it last did; guarded by finding

	pressed atomic.Int64 // requests that wait for memory that anybody may have, in the queue or to grow

	sinceMu sync.Mutex // may be locked under mu
	since   list.List  // of time.Time: when those that wait began to, the oldest first

	mu      sync.Mutex
	used    int64
	seated  int64 // of used: first seats
	asked   int64 // of used: by how much questions have grown
	opened  int64 // accounts until now
	lanes   [lanes]lane
	queue   queue
	holders []Holder
	offered chan struct{} // closed and replaced when a holder has more to give
}

// New returns a budget of limit bytes. by returns the client that a request is of, which is compared with ==: clients
// take turns in the queue. If it is nil, all requests are of one.
func New(limit int64, by func(context.Context) any) *Budget {
	return &Budget{limit: limit, reserve: limit / reserveShare, seats: limit / seatsShare, asks: limit / asksShare,
		queued: waitFor, grow: growFor, look: lookEvery, offered: make(chan struct{}), queue: newQueue(by)}
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
	return b.pressed.Load()
}

// Asking reports whether a question waits for memory that other questions have.
func (b *Budget) Asking() bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.lanes[questions].waiting) > 0
}

// Waited returns for how long the request that waits longest has waited for memory, 0 if none waits.
func (b *Budget) Waited() time.Duration {
	if b == nil {
		return 0
	}
	b.sinceMu.Lock()
	defer b.sinceMu.Unlock()
	if b.since.Len() == 0 {
		return 0
	}
	return time.Since(b.since.Front().Value.(time.Time))
}

// press says that a request waits, until relieve.
func (b *Budget) press() *list.Element {
	b.pressed.Add(1)
	b.sinceMu.Lock()
	defer b.sinceMu.Unlock()
	return b.since.PushBack(time.Now())
}

// Join adds a holder. leave removes it.
func (b *Budget) Join(h Holder) (leave func()) {
	if b == nil {
		return func() {}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.holders = append(b.holders, h)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.holders = slices.DeleteFunc(b.holders, func(o Holder) bool { return o == h })
	}
}

// common returns how many bytes are kept for nothing: what calls without the reserve and without first seats may have.
func (b *Budget) common() int64 { return b.limit - b.reserve - b.seats }

// open returns how many bytes may be taken by such calls and by first seats, with those that they have. It needs the
// lock.
func (b *Budget) open() int64 { return b.common() + min(b.seated, b.seats) }

// kept returns how many bytes only first seats may take. It needs the lock.
func (b *Budget) kept() int64 { return min(b.seats-b.seated, b.limit-b.reserve-b.used) }

// use charges n bytes. It needs the lock.
func (b *Budget) use(n int64, as kind) {
	b.used += n
	if as == firstSeat {
		b.seated += n
	}
}

// TryAcquire charges n bytes if they are free and nobody waits.
func (b *Budget) TryAcquire(n int64) bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pressed.Load() > 0 || n > b.open()-b.used {
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
	return b.acquire(ctx, n, Kept, plain)
}

// Seat charges n bytes for the first batch of a client, until Unseat. It may use the bytes kept for first batches; if
// they are too few, Seat is Acquire. Further batches of the client must use Acquire, or they would use up the bytes
// kept for others.
func (b *Budget) Seat(ctx context.Context, n int64) error {
	if b == nil {
		return nil
	}
	return b.acquire(ctx, n, Kept, firstSeat)
}

// Unseat says that n bytes of Seat are for no first batch any more. They stay charged until Release.
func (b *Budget) Unseat(n int64) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seated -= n; b.seated < 0 {
		panic("budget: more seats are given back than were taken")
	}
	b.serve() // as much is free for other first seats, and nothing may be released for long
}

type waitKey struct{}

// OnWait returns a context for requests that call leave when they begin to wait in the queue. It gives back what only
// work needs, such as one of the places of openings: otherwise a few clients that wait for much memory would hold all
// places, and others would wait for these however little memory they want.
func OnWait(ctx context.Context, leave func()) context.Context {
	return context.WithValue(ctx, waitKey{}, leave)
}

// acquire is Acquire that asks holders up to a level.
func (b *Budget) acquire(ctx context.Context, n int64, most Level, as kind) error {
	if n > b.common() {
		return fault.New(fault.Limit, "memory", fault.NoOffset, "%d bytes are needed at once, and %s is %d, of which "+
			"%d are kept for tables that grow and for first batches: raise it, or ask for less", n, Flag, b.limit,
			b.limit-b.common())
	}
	b.mu.Lock()
	if b.queue.waiting == 0 && n <= b.open()-b.used || as == firstSeat && n <= b.kept() {
		b.use(n, as)
		b.mu.Unlock()
		return nil
	}
	if b.queue.waiting >= maxWaiters {
		b.mu.Unlock()
		return fault.New(fault.Limit, "memory", fault.NoOffset, "%d requests wait for memory of %s, no more are taken",
			maxWaiters, Flag)
	}
	waiter := b.queue.push(ctx, n, as)
	b.serve() // those that wait may have been given more than this client
	if isClosed(waiter.ready) {
		b.mu.Unlock()
		return nil
	}
	waits := b.press()
	offered := b.offered
	b.mu.Unlock()
	turns.Rest(ctx) // those who give memory back may need the processor
	if leave, ok := ctx.Value(waitKey{}).(func()); ok {
		leave()
	}
	defer b.relieve(waits)
	done := make(chan struct{})
	defer close(done)
	go b.collect(waiter, most, offered, done)
	look := time.NewTicker(b.look)
	defer look.Stop()
	timer := time.NewTimer(b.queued)
	defer timer.Stop()
	var err error
	for err == nil {
		select {
		case <-waiter.ready:
			return nil
		case <-look.C:
			b.find()
		case <-ctx.Done():
			err = ctx.Err()
		case <-timer.C:
			err = fault.New(fault.Limit, "memory", fault.NoOffset, "%d bytes of %s (%d) were not free for %v: "+
				"raise it, or ask for less at a time", n, Flag, b.limit, b.queued)
		}
	}
	b.leave(waiter)
	return err
}

// find runs the garbage collector, at most once per look, however many requests wait. Some memory is only freed by
// cleanups, and charged memory need not be on the heap: if all requests wait, nothing else would start a collection for
// two minutes.
func (b *Budget) find() {
	if b.finding.TryLock() {
		defer b.finding.Unlock()
		if now := time.Now(); now.Sub(b.found) >= b.look {
			b.found = now
			runtime.GC()
		}
	}
}

// collect asks holders for the memory of w once it is the first one of the queue, and again whenever one has more to
// give, until done is closed. The caller of Acquire does not do it, because it may be a holder itself: a holder that
// ends waits for its own calls.
func (b *Budget) collect(w *waiter, most Level, offered, done chan struct{}) {
	select {
	case <-done:
		return
	case <-w.turned:
	}
	for {
		b.reclaim(most, func() bool { return isClosed(w.ready) || isClosed(done) })
		select {
		case <-done:
			return
		case <-offered:
		}
		offered = b.offers()
	}
}

// offers returns a channel that is closed when a holder has more to give.
func (b *Budget) offers() chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.offered
}

// Offer says that a holder has more to give than before. It never waits, so that it may be called under locks that
// holders need.
func (b *Budget) Offer() {
	if b == nil || b.pressed.Load() == 0 {
		return // who comes later asks the holders first
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.offered)
	b.offered = make(chan struct{})
}

// leave takes w out of the queue. If w was served in the meantime, it gives the memory back.
func (b *Budget) leave(w *waiter) {
	b.mu.Lock()
	waited := b.queue.remove(w)
	b.serve() // the next may want less
	b.mu.Unlock()
	if !waited {
		if w.as == firstSeat {
			b.Unseat(w.n)
		}
		b.Release(w.n)
	}
}

// serve gives memory to accounts that grow, which hold what others may need, and then to the queue, in its
// order: while the first one has too little room, nobody behind it is served but first seats. It needs the lock.
func (b *Budget) serve() {
	for i := range b.lanes {
		b.grant(&b.lanes[i])
	}
	for w := b.queue.first(); w != nil && w.n <= b.open()-b.used; w = b.queue.first() {
		b.hand(w)
	}
	for w := b.queue.firstSeat(b.kept()); w != nil; w = b.queue.firstSeat(b.kept()) {
		b.hand(w)
	}
	if w := b.queue.first(); w != nil && !isClosed(w.turned) {
		close(w.turned)
	}
	b.untie()
}

// hand charges what w waits for. It needs the lock.
func (b *Budget) hand(w *waiter) {
	b.use(w.n, w.as)
	b.queue.served(w)
	close(w.ready)
}

// Release gives n bytes back. The caller must not hold a lock that a Holder needs.
func (b *Budget) Release(n int64) {
	if b == nil || n == 0 {
		return
	}
	b.release(func() int64 { return n })
}

// release gives back as many bytes as given returns, which it calls with the lock.
func (b *Budget) release(given func() int64) {
	b.mu.Lock()
	b.used -= given()
	if b.used < 0 {
		b.mu.Unlock()
		panic("budget: more is given back than was taken")
	}
	b.serve()
	b.mu.Unlock()
	if b.pressed.Load() == 0 {
		b.tell()
	}
}

// relieve says that a request waits no more, for which press returned waits.
func (b *Budget) relieve(waits *list.Element) {
	b.sinceMu.Lock()
	b.since.Remove(waits)
	b.sinceMu.Unlock()
	if b.pressed.Add(-1) == 0 {
		b.tell() // what came back while it waited was not for holders
	}
}

// tell tells the holders that there may be memory for them.
func (b *Budget) tell() {
	b.mu.Lock()
	holders := slices.Clone(b.holders)
	b.mu.Unlock()
	for _, h := range holders {
		h.Freed()
	}
}

// reclaim asks all holders to give memory back, level by level up to most, until enough says so.
func (b *Budget) reclaim(most Level, enough func() bool) {
	b.mu.Lock()
	holders := slices.Clone(b.holders)
	b.mu.Unlock()
	for l := range most + 1 {
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
