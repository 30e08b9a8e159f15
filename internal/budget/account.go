package budget

import (
	"context"
	"slices"
	"sync"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/turns"
)

// Account counts the bytes that one request has charged. It is safe for concurrent use.
type Account struct {
	budget *Budget
	asks   bool  // a question has it
	age    int64 // how many accounts there were when it was opened, with it

	// growing is held by the call that may wait, so that an account waits once.
	growing sync.Mutex

	// Guarded by budget.mu.
	bytes int64
	grown int64 // the part of bytes that counts to Budget.questionUse: only of a question
}

// Open returns an account of n bytes, for which it waits in the queue. The caller must close the account.
func (b *Budget) Open(ctx context.Context, n int64) (*Account, error) {
	return b.account(ctx, n, false)
}

// OpenQuestion is Open for a question. All questions together may grow by at most half of the budget. To make room for
// a question, no dataset is closed that a stream takes batches from (Kept).
func (b *Budget) OpenQuestion(ctx context.Context, n int64) (*Account, error) {
	return b.account(ctx, n, true)
}

func (b *Budget) account(ctx context.Context, n int64, asks bool) (*Account, error) {
	if b == nil {
		return nil, nil
	}
	account := &Account{budget: b, asks: asks, bytes: n}
	if err := b.acquire(ctx, n, account.level()); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opened++
	account.age = b.opened
	return account, nil
}

// level returns how much of holders is taken for the account.
func (a *Account) level() Level {
	if a.asks {
		return Closed
	}
	return Kept
}

// Held returns the bytes that are charged to the account.
func (a *Account) Held() int64 {
	if a == nil {
		return 0
	}
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	return a.bytes
}

// Grow charges n more bytes. If there is no room for them, it returns an error of kind limit.
func (a *Account) Grow(ctx context.Context, n int64) error {
	if a == nil || n <= 0 || a.TryGrow(n) {
		return nil
	}
	budget := a.budget
	if n > budget.limit || a.asks && n > budget.asks {
		return a.full(n)
	}
	turns.Rest(ctx) // before any wait: those who give memory back may need the processor
	a.growing.Lock()
	defer a.growing.Unlock()
	waiter := newWaiter(n)
	waiter.account = a
	budget.mu.Lock()
	budget.start(waiter)
	budget.serve()
	budget.mu.Unlock()
	refused, err := budget.wait(ctx, waiter, a.level(), budget.grow)
	if refused {
		return a.full(n)
	}
	return err
}

// start lets an account wait behind those that come before it. It needs the lock.
func (b *Budget) start(w *waiter) {
	pos := slices.IndexFunc(b.growing, func(o *waiter) bool { return w.account.before(o.account) })
	if pos < 0 {
		pos = len(b.growing)
	}
	b.growing = slices.Insert(b.growing, pos, w)
}

// stop ends the wait of an account, and reports whether it has waited until now. It needs the lock.
func (b *Budget) stop(w *waiter) bool {
	pos := slices.Index(b.growing, w)
	if pos >= 0 {
		b.growing = slices.Delete(b.growing, pos, pos+1)
	}
	return pos >= 0
}

// before reports whether an account grows before another one.
func (a *Account) before(o *Account) bool {
	if a.asks != o.asks {
		return o.asks
	}
	return a.age < o.age
}

// fits reports whether n bytes are free for an account. It needs the lock.
func (b *Budget) fits(a *Account, n int64) bool {
	return !b.lacks(a, n) && (!a.asks || n <= b.asks-b.questionUse)
}

// lacks reports whether there is too little memory for an account, and not for questions alone. It needs the lock.
func (b *Budget) lacks(a *Account, n int64) bool {
	if !a.asks {
		n -= b.growth
	}
	return b.short(n)
}

// charge needs the lock.
func (b *Budget) charge(a *Account, n int64) {
	b.used += n
	a.bytes += n
	if a.asks {
		a.grown += n
		b.questionUse += n
	}
}

// untie refuses accounts that wait for each other. This is found without a timeout, because only memory of accounts
// that do not wait, and memory without an account, can come back. If the first account that waits, or the first
// question, would not find room even then, those behind it are refused at once, the last one first, until it would; and
// at last it is refused itself. So work goes on: the oldest account is refused last, and others never for questions. It
// needs the lock.
func (b *Budget) untie() {
	for pos := 0; pos < len(b.growing); {
		first, last := b.growing[pos], b.growing[len(b.growing)-1]
		switch {
		case first.n > b.couldHave(first.account):
			last.mustFail = true
			b.stop(last)
			close(last.ready)
		case first.account.asks:
			return
		default:
			pos = slices.IndexFunc(b.growing, func(w *waiter) bool { return w.account.asks })
			if pos < 0 {
				return
			}
		}
	}
}

// couldHave returns the bytes that an account would find free if all came back that does not wait. It needs the lock.
func (b *Budget) couldHave(a *Account) int64 {
	room, grown := b.limit, b.asks
	for _, w := range b.growing {
		room -= w.account.bytes
		grown -= w.account.grown
	}
	if a.asks {
		return min(room-b.growth, grown)
	}
	return room
}

func (a *Account) full(n int64) error {
	budget := a.budget
	if a.asks {
		return fault.New(fault.Limit, "memory", fault.NoOffset, "%d bytes more than the %d that it has do not fit "+
			"into the %d that questions have together of %s, which is %d: raise it, or ask for less at a time",
			n, a.Held(), budget.asks, Flag, budget.limit)
	}
	return fault.New(fault.Limit, "memory", fault.NoOffset, "%d bytes more than the %d that it has do not fit into "+
		"%s, which is %d: raise it, or ask for less at a time", n, a.Held(), Flag, budget.limit)
}

// Shrink gives n bytes back, at most what the account has.
func (a *Account) Shrink(n int64) {
	if a != nil && n > 0 {
		a.budget.change(func() { a.budget.used -= a.drop(n) })
	}
}

// drop takes n bytes off the account, at most all of them, and returns how many. They stay charged to the budget. It
// needs the lock of the budget.
func (a *Account) drop(n int64) int64 {
	n = min(n, a.bytes)
	a.bytes -= n
	grown := min(n, a.grown)
	a.grown -= grown
	a.budget.questionUse -= grown
	return n
}

// TryGrow charges n more bytes if they are free. It never waits.
func (a *Account) TryGrow(n int64) bool {
	if a == nil {
		return true
	}
	budget := a.budget
	budget.mu.Lock()
	defer budget.mu.Unlock()
	ok := budget.fits(a, n)
	if ok {
		budget.charge(a, n)
		budget.serve() // it may wait in another goroutine, and holds more now
	}
	return ok
}

// Put adds n bytes that the caller has charged, by TryAcquire, to the account.
func (a *Account) Put(n int64) {
	if a == nil {
		return
	}
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	a.bytes += n
}

// Take removes n bytes from the account and leaves them charged: they are the caller's to release.
func (a *Account) Take(n int64) {
	if a == nil {
		return
	}
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	a.drop(n)
}

// Close gives back all that the account has. It may be called more than once.
func (a *Account) Close() {
	if a != nil {
		a.budget.change(func() { a.budget.used -= a.drop(a.bytes) })
	}
}

type accountKey struct{}

// With returns a context whose work is charged to a.
func With(ctx context.Context, a *Account) context.Context {
	if a == nil {
		return ctx
	}
	return context.WithValue(ctx, accountKey{}, a)
}

// Of returns the account of With, or nil.
func Of(ctx context.Context) *Account {
	a, _ := ctx.Value(accountKey{}).(*Account)
	return a
}

// Grow charges n bytes to the account of ctx, if there is one.
func Grow(ctx context.Context, n int64) error { return Of(ctx).Grow(ctx, n) }
