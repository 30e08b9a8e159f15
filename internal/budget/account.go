package budget

import (
	"context"
	"sync"
	"time"

	"github.com/chaski-eo/chaski/fault"
)

// Account is what one request has charged. It is safe for concurrent use.
type Account struct {
	budget *Budget

	// growing is held by the call of Grow that may wait, so that an account waits for the reserve once.
	growing sync.Mutex

	mu   sync.Mutex
	held int64
	turn bool // it may use the reserve
}

// Open returns an account of n bytes, for which it waits in the queue. The caller must close the account.
func (b *Budget) Open(ctx context.Context, n int64) (*Account, error) {
	if b == nil {
		return nil, nil
	}
	if err := b.Acquire(ctx, n); err != nil {
		return nil, err
	}
	return &Account{budget: b, held: n}, nil
}

// Held returns the bytes that are charged to the account.
func (a *Account) Held() int64 {
	if a == nil {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.held
}

// Grow charges n more bytes. If there is no room for them, it is an error of kind limit.
func (a *Account) Grow(ctx context.Context, n int64) error {
	if a == nil || n <= 0 {
		return nil
	}
	b := a.budget
	if n > b.limit {
		return a.full(n)
	}
	if ok, _ := b.barge(n, a.hasTurn()); ok {
		a.add(n)
		return nil
	}
	a.growing.Lock()
	defer a.growing.Unlock()
	defer b.relieve(b.press()) // engines give their memory back, and take no more
	done := false
	b.reclaim(func() bool {
		if !done {
			done, _ = b.barge(n, a.hasTurn())
		}
		return done
	})
	if !done {
		if done, _ = b.barge(n, a.hasTurn()); !done {
			if err := a.takeTurn(ctx); err != nil {
				return err
			}
			if err := a.wait(ctx, n); err != nil {
				return err
			}
		}
	}
	a.add(n)
	return nil
}

func (a *Account) full(n int64) error {
	return fault.New(fault.Limit, "memory", fault.NoOffset, "%d bytes more than the %d that it has do not fit into "+
		"%s, which is %d: raise it, or ask for less at a time", n, a.Held(), Flag, a.budget.limit)
}

func (a *Account) add(n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held += n
}

func (a *Account) hasTurn() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.turn
}

// takeTurn waits for the reserve. It needs growing.
func (a *Account) takeTurn(ctx context.Context) error {
	if a.hasTurn() {
		return nil
	}
	t := time.NewTimer(a.budget.wait)
	defer t.Stop()
	select {
	case a.budget.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return fault.New(fault.Limit, "memory", fault.NoOffset, "the reserve of %s (%d) was in use for %v: raise it",
			Flag, a.budget.limit, a.budget.wait)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.turn = true
	return nil
}

// wait charges n bytes, also of the reserve. It does not wait long, because the others may wait for this account.
func (a *Account) wait(ctx context.Context, n int64) error {
	b := a.budget
	t := time.NewTimer(b.grow)
	defer t.Stop()
	for {
		b.mu.Lock()
		freed, offered := b.freed, b.offered
		b.mu.Unlock()
		ok, _ := b.barge(n, true)
		b.reclaim(func() bool {
			if !ok {
				ok, _ = b.barge(n, true)
			}
			return ok
		})
		if !ok {
			ok, _ = b.barge(n, true) // the last holder gave
		}
		if ok {
			return nil
		}
		select {
		case <-freed:
		case <-offered:
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
			return a.full(n)
		}
	}
}

// Shrink gives n bytes back, at most what the account has.
func (a *Account) Shrink(n int64) {
	if a == nil || n <= 0 {
		return
	}
	a.mu.Lock()
	n = min(n, a.held)
	a.held -= n
	a.mu.Unlock()
	a.budget.Release(n)
}

// TryGrow charges n more bytes if they are free. It never waits.
func (a *Account) TryGrow(n int64) bool {
	if a == nil {
		return true
	}
	ok, _ := a.budget.barge(n, false)
	if ok {
		a.add(n)
	}
	return ok
}

// Put adds n bytes that the caller has charged, by TryAcquire, to the account.
func (a *Account) Put(n int64) {
	if a != nil {
		a.add(n)
	}
}

// Take removes n bytes from the account and leaves them charged: they are the caller's to release.
func (a *Account) Take(n int64) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held -= n
}

// Settle says that the account grows no more, so that another one may use the reserve. What it has in the reserve must
// find room outside of it first, otherwise the reserve would be gone for as long as the account is open. If there is
// none, it is an error of kind limit.
func (a *Account) Settle(ctx context.Context) error {
	if a == nil || !a.hasTurn() {
		return nil
	}
	b := a.budget
	defer b.relieve(b.press())
	outside := func() bool {
		ok, _ := b.barge(0, false)
		return ok
	}
	b.reclaim(outside)
	t := time.NewTimer(b.grow)
	defer t.Stop()
	for {
		ok, freed := b.barge(0, false)
		if ok {
			a.pass()
			return nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
			return a.full(0)
		}
	}
}

// pass lets another account use the reserve.
func (a *Account) pass() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.turn {
		a.turn = false
		<-a.budget.turn
	}
}

// Close gives back all that the account has. It may be called more than once.
func (a *Account) Close() {
	if a == nil {
		return
	}
	a.mu.Lock()
	n := a.held
	a.held = 0
	a.mu.Unlock()
	a.budget.Release(n) // before the reserve passes on, so that the next one finds it free
	a.pass()
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
