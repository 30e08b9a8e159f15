package budget

import (
	"context"
	"sync"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/turns"
)

// Account counts the bytes that one request has charged. It is safe for concurrent use.
type Account struct {
	budget *Budget
	asks   bool  // it is that of a question
	age    int64 // how many accounts there were when it was opened, with it

	// growing is held by the call that may wait, so that an account waits once.
	growing sync.Mutex

	// Guarded by budget.mu.
	held  int64
	grown int64 // the part of held that counts to Budget.asked: only of a question
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
	account := &Account{budget: b, asks: asks, held: n}
	if err := b.acquire(ctx, n, account.level(), plain); err != nil {
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

func (a *Account) lane() *lane {
	if a.asks {
		return &a.budget.lanes[questions]
	}
	return &a.budget.lanes[others]
}

// Held returns the bytes that are charged to the account.
func (a *Account) Held() int64 {
	if a == nil {
		return 0
	}
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	return a.held
}

// Grow charges n more bytes. If there is no room for them, it returns an error of kind limit.
func (a *Account) Grow(ctx context.Context, n int64) error {
	if a == nil || n <= 0 || a.TryGrow(n) {
		return nil
	}
	if n > a.budget.limit || a.asks && n > a.budget.asks {
		return a.full(n)
	}
	turns.Rest(ctx) // before any wait: those who give memory back may need the processor
	a.growing.Lock()
	defer a.growing.Unlock()
	return a.budget.wait(ctx, a, n, false)
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
	if a == nil || n <= 0 {
		return
	}
	a.budget.release(func() int64 { return a.drop(n) })
}

// drop takes n bytes off the account, at most all of them, and returns how many. They stay charged to the budget. It
// needs the lock of the budget.
func (a *Account) drop(n int64) int64 {
	n = min(n, a.held)
	a.held -= n
	grown := min(n, a.grown)
	a.grown -= grown
	a.budget.asked -= grown
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
	ok, _ := budget.fits(a, n, false)
	if ok {
		budget.charge(a, n)
		budget.untie() // it may wait in another goroutine, and holds more now
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
	a.held += n
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

// Settle ends the growth of the account, so that another account may use the reserve. It moves the bytes that the
// account holds in the reserve out of it, because the reserve would otherwise be taken for as long as the account is
// open. If there is no room for them, it returns an error of kind limit.
func (a *Account) Settle(ctx context.Context) error {
	if a == nil || !a.hasTurn() {
		return nil
	}
	turns.Rest(ctx) // as in Grow
	a.growing.Lock()
	defer a.growing.Unlock()
	return a.budget.wait(ctx, a, 0, true)
}

func (a *Account) hasTurn() bool {
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	return a.lane().turn == a
}

// Close gives back all that the account has. It may be called more than once.
func (a *Account) Close() {
	if a == nil {
		return
	}
	a.budget.release(func() int64 {
		if l := a.lane(); l.turn == a {
			l.turn = nil
		}
		return a.drop(a.held)
	})
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
