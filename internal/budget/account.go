package budget

import (
	"context"

	"github.com/chaski-eo/chaski/fault"
)

// Account counts the bytes that one request has charged. It is safe for concurrent use.
type Account struct {
	budget *Budget
	bytes  int64 // guarded by budget.mu
}

// Open returns an account of n bytes, for which it waits in the queue. The caller must close the account.
func (b *Budget) Open(ctx context.Context, n int64) (*Account, error) {
	if b == nil {
		return nil, nil
	}
	if err := b.Acquire(ctx, n); err != nil {
		return nil, err
	}
	return &Account{budget: b, bytes: n}, nil
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

// Grow charges n more bytes. It waits for them for a while, and then returns an error of kind limit.
func (a *Account) Grow(ctx context.Context, n int64) error {
	if a == nil || n <= 0 || a.TryGrow(n) {
		return nil
	}
	budget := a.budget
	if n > budget.limit-a.Held() {
		return a.full(n)
	}
	select {
	case <-budget.mayGrow:
		defer func() { budget.mayGrow <- struct{}{} }()
	case <-ctx.Done():
		return ctx.Err()
	}
	waiter := newWaiter(n)
	waiter.account = a
	budget.mu.Lock()
	budget.growing = waiter
	budget.serve()
	budget.mu.Unlock()
	late, err := budget.wait(ctx, waiter, budget.grow)
	if late {
		return a.full(n)
	}
	return err
}

// lacks reports whether there is too little memory for an account to grow by n bytes. It needs the lock.
func (b *Budget) lacks(n int64) bool { return b.short(n - b.growth) }

// charge needs the lock.
func (b *Budget) charge(a *Account, n int64) {
	b.used += n
	a.bytes += n
}

func (a *Account) full(n int64) error {
	return fault.New(fault.Limit, "memory", "%d bytes more than the %d that it has do not fit into "+
		"%s, which is %d: raise it, or ask for less at a time", n, a.Held(), Flag, a.budget.limit)
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
	ok := !budget.lacks(n)
	if ok {
		budget.charge(a, n)
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
