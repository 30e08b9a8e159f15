package budget

import (
	"context"
	"slices"
	"sync"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/pace"
)

// Account counts the bytes that one request has charged. It is safe for concurrent use.
type Account struct {
	budget *Budget
	age    int64 // how many accounts there were when it was opened, with it

	// growing is held by the call that may wait, so an account waits once.
	growing sync.Mutex

	bytes int64 // guarded by budget.mu
}

// Open returns an account of n bytes, for which it waits in the queue. The caller must close the account.
func (b *Budget) Open(ctx context.Context, n int64) (*Account, error) {
	if b == nil {
		return nil, nil
	}
	account := &Account{budget: b, bytes: n}
	if err := b.Acquire(ctx, n); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opened++
	account.age = b.opened
	return account, nil
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
	if n > budget.limit {
		return a.full(n)
	}
	pace.Rest(ctx) // before any wait: those who give memory back may need the processor
	a.growing.Lock()
	defer a.growing.Unlock()
	waiter := newWaiter(n)
	waiter.account = a
	budget.mu.Lock()
	budget.start(waiter)
	budget.serve()
	budget.mu.Unlock()
	refused, err := budget.wait(ctx, waiter, budget.grow)
	if refused {
		return a.full(n)
	}
	return err
}

// start lets an account wait behind those that come before it. It needs the lock.
func (b *Budget) start(w *budgetWaiter) {
	pos := slices.IndexFunc(b.growing, func(o *budgetWaiter) bool { return w.account.age < o.account.age })
	if pos < 0 {
		pos = len(b.growing)
	}
	b.growing = slices.Insert(b.growing, pos, w)
}

// stop ends the wait of an account, and reports whether it has waited until now. It needs the lock.
func (b *Budget) stop(w *budgetWaiter) bool {
	pos := slices.Index(b.growing, w)
	if pos >= 0 {
		b.growing = slices.Delete(b.growing, pos, pos+1)
	}
	return pos >= 0
}

// lacks reports whether there is too little memory for an account to grow by n bytes. It needs the lock.
func (b *Budget) lacks(n int64) bool { return b.short(n - b.growth) }

// charge needs the lock.
func (b *Budget) charge(a *Account, n int64) {
	b.used += n
	a.bytes += n
}

// untie refuses accounts that wait for each other. This needs no timeout: only accounts that are not waiting, and
// memory without an account, can give back. If the first account that waits would not find room even then, those behind
// it are refused at once, the last one first, until it would; and at last it is refused itself. So work goes on: the
// oldest account is refused last. It needs the lock.
func (b *Budget) untie() {
	for len(b.growing) > 0 && b.growing[0].n > b.couldHave() {
		last := b.growing[len(b.growing)-1]
		last.mustFail = true
		b.stop(last)
		close(last.ready)
	}
}

// couldHave returns the bytes that an account would find free if all came back that does not wait. It needs the lock.
func (b *Budget) couldHave() int64 {
	room := b.limit
	for _, w := range b.growing {
		room -= w.account.bytes
	}
	return room
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
